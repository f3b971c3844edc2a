// Package webhookserver serves admission webhooks: it leaves wrong types to the schema, and its certificate may change
// while it serves.
package webhookserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// A Server is a webhook server for a manager.
type Server struct {
	webhook.Server
	own     bool // the certificate comes from SetCertificate, not from files
	current atomic.Pointer[tls.Certificate]
}

var errNoCertificate = errors.New("the webhooks have no certificate yet")

// New returns a server, or an error when its port is in use. Without a CertDir it has no certificate until
// SetCertificate is called.
func New(o webhook.Options) (*Server, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port))) // the manager would fail later
	if err != nil {
		return nil, err
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	s := &Server{own: o.CertDir == ""}
	if s.own {
		o.TLSOpts = append(o.TLSOpts, func(c *tls.Config) { c.GetCertificate = s.certificate })
	}
	s.Server = webhook.NewServer(o)
	return s, nil
}

// Register implements webhook.Server. An object that cannot be decoded passes. Its fields have types that the
// schema does not allow, and the API server's message names them, which a decoder's error does not. The API
// server looks at the schema after mutating webhooks and before validating ones. So only an old object, which was
// stored under another schema, can be wrong in a validating webhook, and a user must be able to fix it.
func (s *Server) Register(path string, hook http.Handler) {
	if w, ok := hook.(*admission.Webhook); ok {
		next := w.Handler
		w.Handler = admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
			response := next.Handle(ctx, req)
			if !response.Allowed && response.Result.Code == http.StatusBadRequest { // how controller-runtime answers
				return admission.Allowed("")
			}
			return response
		})
	}
	s.Server.Register(path, hook)
}

// SetCertificate serves another certificate from the next connection on.
func (s *Server) SetCertificate(certPEM, keyPEM []byte) error {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err == nil {
		s.current.Store(&pair)
	}
	return err
}

// certificate implements tls.Config.GetCertificate.
func (s *Server) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := s.current.Load(); now != nil {
		return now, nil
	}
	return nil, errNoCertificate
}

// Ready is a healthz.Checker: a connection can be made, so a Service may send requests here.
func (s *Server) Ready(r *http.Request) error {
	if s.own && s.current.Load() == nil {
		return errNoCertificate // the server would log each question
	}
	return s.StartedChecker()(r)
}
