package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// An Exchange is one request with its answer, while it passes the proxy.
type Exchange struct {
	proxy  *Proxy
	client *client
	ctx    context.Context
	id     int
	// keepsBody is set for a known client. The body of another client goes to the API server as it arrives.
	keepsBody bool
	token     bool // the API server may accept the client
	query     url.Values
	body      []byte
	copies    int     // how often the request is sent again after the first time
	answer    *Answer // of the API server, or in its place
	made      bool    // by a rule
	stream    *Stream // of a watch or another answer that does not end
}

// An Answer is what a client gets.
type Answer struct {
	// Code is the HTTP status.
	Code   int
	Header http.Header
	// Body is empty for a stream of the API server.
	Body []byte
	// Open makes a stream of an answer that a rule gives: it goes on after Body until it is cut or ended.
	Open bool
}

// Context ends when the client gives up, and when the proxy is closed.
func (x *Exchange) Context() context.Context { return x.ctx }

// Entry is the current ledger entry of the request.
func (x *Exchange) Entry() ledger.Entry { return x.proxy.ledger.Entry(x.id) }

// Query are the parameters of the request. A rule that acts before the request is forwarded may change them.
func (x *Exchange) Query() url.Values { return x.query }

// RequestBody is the body that the client sent. It must not be changed.
func (x *Exchange) RequestBody() []byte { return x.body }

func (x *Exchange) change(f func(*ledger.Entry)) { x.proxy.ledger.Change(x.id, f) }

// RoundTrip passes a request from the client to the API server and the answer back, and applies the rules. It first
// reads the whole answer, unless the answer is a stream: when a rule acts "after", the API server has finished the
// request.
func (x *Exchange) RoundTrip(out *http.Request) (*http.Response, error) {
	if out.Header.Get("Upgrade") != "" {
		return x.upgrade(out)
	}
	if err := x.readRequest(out); errors.Is(err, errTooLarge) {
		x.reply(answer(apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody)).ErrStatus))
		return x.pass(out), nil
	} else if err != nil {
		return nil, err
	}
	x.query = out.URL.Query()
	if err := x.meet(Before); err != nil {
		return nil, err
	}
	if changed := x.query.Encode(); changed != out.URL.Query().Encode() {
		out.URL.RawQuery = changed
	}
	if !x.made {
		if err := x.forward(out); err != nil {
			return nil, err
		}
		if err := x.meet(After); err != nil {
			x.closeStream()
			return nil, err
		}
	}
	return x.pass(out), nil
}

// upgrade passes a connection over to another protocol. Rules do not apply to it.
func (x *Exchange) upgrade(out *http.Request) (*http.Response, error) {
	response, err := x.client.h1.RoundTrip(out)
	if err == nil {
		x.served(response)
		x.change(func(e *ledger.Entry) { e.Code = response.StatusCode })
	}
	return response, err
}

// maxBody is the API server's limit for the body of a request.
const maxBody = 3 << 20

var errTooLarge = errors.New("the body is too large")

// readRequest keeps the body for rules. A request that a service, a pod or a node answers has a body without a limit,
// which passes as it arrives.
func (x *Exchange) readRequest(out *http.Request) (err error) {
	if out.Body == nil || !x.keepsBody || x.isStream() {
		return nil
	}
	if x.body, err = io.ReadAll(io.LimitReader(out.Body, maxBody+1)); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if len(x.body) > maxBody {
		x.body = nil
		return errTooLarge
	}
	x.change(func(e *ledger.Entry) {
		if e.Verb != wire.Create || e.Name != "" {
			return
		}
		if objects, _, err := wire.Objects(out.Header, x.body); err == nil && len(objects) == 1 {
			e.Name = objects[0].Name // an answer that refuses a request does not name the object
		}
	})
	return nil
}

// forward sends the request to the API server once or more. The first answer counts.
func (x *Exchange) forward(out *http.Request) error {
	if err := x.ask(out); err != nil {
		return err
	}
	for range x.copies {
		response, err := x.send(out)
		if err != nil {
			return fmt.Errorf("send the request once more: %w", err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return fmt.Errorf("send the request once more: %w", err)
		}
	}
	return nil
}

func (x *Exchange) send(out *http.Request) (*http.Response, error) {
	if x.body != nil {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(x.body)), int64(len(x.body))
	}
	response, err := x.client.h2.RoundTrip(out)
	if err == nil {
		x.served(response)
	}
	return response, err
}

func (x *Exchange) served(response *http.Response) {
	x.change(func(e *ledger.Entry) {
		e.Unknown = e.Unknown && (!x.token || !isAccepted(response.StatusCode))
		e.Served = append(e.Served, response.StatusCode)
		if id := response.Header.Get("Audit-Id"); id != "" {
			e.AuditIDs = append(e.AuditIDs, id)
		}
	})
}

// isAccepted reports whether the API server has examined and accepted the client's token before it gave an answer. It
// gives other answers, such as 400 for a wrong timeout, to every client.
func isAccepted(code int) bool {
	return code < http.StatusBadRequest || slices.Contains([]int{http.StatusForbidden, http.StatusNotFound,
		http.StatusConflict, http.StatusUnprocessableEntity}, code)
}

// ask sends the request, keeps the answer, and records its properties in the ledger.
func (x *Exchange) ask(out *http.Request) error {
	moment := x.proxy.ledger.Learnt()
	response, err := x.send(out)
	if err != nil {
		return err
	}
	x.answer = &Answer{Code: response.StatusCode, Header: response.Header}
	if response.StatusCode == http.StatusOK && x.isStream() {
		x.openStream(response.Body)
		return nil
	}
	x.answer.Body, err = io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	x.readAnswer(moment)
	return nil
}

// isStream reports whether an answer may never end.
func (x *Exchange) isStream() bool {
	request := x.Entry().Request
	return request.Verb == wire.Watch || slices.Contains([]string{"log", "proxy", "attach", "exec", "portforward"},
		request.Subresource)
}

// readAnswer records in the ledger which object an answer contains, and the effect of a write.
func (x *Exchange) readAnswer(moment int) {
	request := x.Entry().Request
	if request.Resource == "" || x.answer.Code/100 != 2 {
		return
	}
	objects, isList, err := wire.Objects(x.answer.Header, x.answer.Body)
	effect := ledger.None
	switch {
	case !request.IsWrite():
	case err != nil:
		effect = ledger.Unknown
	case isList: // deletecollection lists the objects that it deleted
		effect = ledger.Same
		if len(objects) > 0 && !request.DryRun {
			effect = ledger.Moved
		}
	default:
		effect = ledger.EffectOf(request, objects[0], x.proxy.ledger.KnownAt(moment, objects[0].UID))
	}
	if !request.DryRun {
		for _, o := range objects {
			x.proxy.ledger.Learn(o)
		}
	}
	var one wire.Object
	if err == nil && !isList {
		one = objects[0]
	}
	if x.proxy.ledger.IsCopied() && !request.DryRun && (request.Subresource == "" || request.Subresource == "status") {
		for _, content := range wire.Contents(x.answer.Header, x.answer.Body) {
			x.proxy.ledger.Describe(content)
		}
	}
	known := x.proxy.ledger.KnownAt(moment, one.UID)
	x.change(func(e *ledger.Entry) {
		e.Effect, e.UID, e.ResourceVersion, e.Known = effect, one.UID, one.ResourceVersion, known
		if e.Verb == wire.Create && e.Name == "" {
			e.Name = one.Name
		}
	})
}

// pass makes the response for the client.
func (x *Exchange) pass(out *http.Request) *http.Response {
	a := x.answer
	response := &http.Response{Status: strconv.Itoa(a.Code) + " " + http.StatusText(a.Code), StatusCode: a.Code,
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: a.Header, Request: out, ContentLength: -1}
	if a.Open && x.made {
		x.openStream(newLasting(a.Body))
	}
	x.change(func(e *ledger.Entry) {
		e.Code = a.Code
		if a.Code >= http.StatusBadRequest {
			e.Message = wire.Message(a.Header, a.Body)
		}
	})
	if x.stream != nil {
		x.proxy.ledger.Opened(x.id)
		response.Body = x.stream
		return response
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(a.Body)), int64(len(a.Body))
	if x.made {
		response.Header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	return response
}
