package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// An Action is the action of a rule on a request. The functions below make actions.
type Action struct {
	name string
	// One of these is set: do acts on the request, stream acts on an open watch.
	do     func(x *Exchange, f *Fault) error
	stream func(s *Stream, f *Fault)
	// lasting actions also apply to the watches that are open when the rule is added.
	lasting bool
}

// errDropped ends a request without an answer.
var errDropped = errors.New("dropped by a rule")

// Hold keeps the request, or the answer, until the rule is released or the client gives up.
func Hold() Action {
	return Action{name: "hold", do: func(x *Exchange, f *Fault) error {
		select {
		case <-f.released:
			return nil
		case <-x.ctx.Done():
			return x.ctx.Err()
		}
	}}
}

// Delay keeps the request, or the answer, for a time.
func Delay(d time.Duration) Action {
	return Action{name: "delay", do: func(x *Exchange, _ *Fault) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-x.ctx.Done():
			return x.ctx.Err()
		}
	}}
}

// Drop resets the request's stream. Before: the API server never gets the request. After: the request is done and its
// answer is lost. Other requests on the same connection continue. client-go returns the error to the caller.
func Drop() Action {
	return Action{name: "drop", do: func(*Exchange, *Fault) error { return errDropped }}
}

// Reply answers in place of the API server. Before: the request never reaches it. After: the request is done and its
// true answer is lost.
func Reply(a Answer) Action {
	return Action{name: fmt.Sprintf("answer %d", a.Code), do: func(x *Exchange, _ *Fault) error {
		x.reply(a)
		return nil
	}}
}

// Refuse answers with the Status that the API server would send with this code. With a retryAfter of more than 0,
// rounded up to seconds, the answer asks the client to retry: client-go then retries by itself, and the caller sees
// no error.
func Refuse(code int, retryAfter time.Duration) Action {
	return Action{name: fmt.Sprintf("answer %d", code), do: func(x *Exchange, _ *Fault) error {
		x.reply(refusal(x.Entry(), code, int(math.Ceil(retryAfter.Seconds()))))
		return nil
	}}
}

// Fail answers with an error of the API server.
func Fail(err *apierrors.StatusError) Action {
	return Reply(answer(err.ErrStatus))
}

// Duplicate sends the request to the API server twice, one after the other. The client gets the first answer. It is
// possible only Before.
func Duplicate() Action {
	return Action{name: "duplicate", do: func(x *Exchange, _ *Fault) error {
		x.copies++
		return nil
	}}
}

// Call runs a function, which may block. Before: the request waits for it. After: the client gets no part of the
// answer until the function returns. The proxy then performs the action on the request that the function returns; the
// zero Action means none.
func Call(f func(x *Exchange) Action) Action {
	return Action{name: "call", do: func(x *Exchange, fault *Fault) error {
		if next := f(x); next.do != nil {
			return next.do(x, fault)
		}
		return nil
	}}
}

// Freeze keeps watches open and withholds their events, until the rule is released or they are cut.
func Freeze() Action {
	return Action{name: "freeze", lasting: true, stream: func(s *Stream, f *Fault) { s.freeze(f) }}
}

// Past answers a list as of an earlier resource version, as a server that lags does. The client must accept any version
// (resourceVersion=0): a list that asks for the newest version is never stale. A watch that accepts any version begins
// at the earlier one; Freeze keeps its client there. A watch that asks for a list as well (sendInitialEvents) is
// refused, as by a server without that feature, because its answer is never stale. Past calls stale for each list. It is
// possible only Before.
func Past(version string, stale func()) Action {
	return Call(func(x *Exchange) Action {
		query, isList := x.Query(), x.Entry().Verb == wire.List
		if query.Get("sendInitialEvents") == "true" {
			return Refuse(http.StatusUnprocessableEntity, 0)
		}
		if query.Get("resourceVersion") != "0" {
			return Action{}
		}
		query.Set("resourceVersion", version)
		if isList {
			query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
			stale()
		}
		return Action{}
	})
}

// reply replaces the API server's answer.
func (x *Exchange) reply(a Answer) {
	x.closeStream()
	a.Header = a.Header.Clone()
	if a.Header == nil {
		a.Header = http.Header{}
	}
	if a.Header.Get("Content-Type") == "" {
		a.Header.Set("Content-Type", "application/json")
	}
	x.answer, x.made = &a, true
}

// methodOf is the HTTP method by which the API server distinguishes a conflict from an object that exists.
func methodOf(verb string) string {
	if verb == "create" {
		return http.MethodPost
	}
	return http.MethodPut
}

func refusal(e ledger.Entry, code, seconds int) Answer {
	resource := schema.GroupResource{Group: e.Group, Resource: e.Resource}
	status := apierrors.NewGenericServerResponse(code, methodOf(e.Verb), resource, e.Name, "", seconds, false).ErrStatus
	status.Message = fmt.Sprintf("the lab answers %d", code)
	switch code {
	case http.StatusGone:
		status.Reason = metav1.StatusReasonExpired
	case http.StatusForbidden: // operators look for the API server's words
		status.Message = apierrors.NewForbidden(resource, e.Name, errors.New(status.Message)).ErrStatus.Message
	}
	a := answer(status)
	if seconds > 0 {
		a.Header.Set("Retry-After", strconv.Itoa(seconds))
	}
	return a
}

// answer is a Status as the API server sends it.
func answer(status metav1.Status) Answer {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // a Status of plain strings
	}
	return Answer{Code: int(status.Code), Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}
