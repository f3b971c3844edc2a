package lookaround

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// explain describes a failed request in one line: the request, the server, the reason, and the fix if one is
// known.
func explain(question string, cfg *rest.Config, err error) error {
	reason := func(text, fix string) error {
		return fmt.Errorf("%s of %s: %s; fix: %s", question, cfg.Host, oneLine(text), fix)
	}
	var (
		certificate *tls.CertificateVerificationError
		lookup      *net.DNSError
		timeout     net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s of %s: interrupted", question, cfg.Host)
	case apierrors.IsForbidden(err):
		text := err.Error()
		if text == "unknown" { // the message of client-go for an error that it cannot decode
			text = "forbidden"
		}
		return reason(text, "have a role with that verb bound to the user, or use a kubeconfig that may do it")
	case apierrors.IsUnauthorized(err):
		return reason("the server does not know this user: the credentials are wrong or have expired",
			"get a fresh kubeconfig; for the local cluster `make up` prints where it is")
	case errors.As(err, &certificate):
		return reason("its certificate is not the one that the kubeconfig expects ("+certificate.Err.Error()+")",
			"the kubeconfig belongs to another cluster, perhaps an earlier one at the same address: get a fresh one")
	case errors.Is(err, syscall.ECONNREFUSED):
		return reason("nothing listens there", "start the cluster; `make status` shows the local one, `make up` repairs it")
	case errors.As(err, &lookup):
		return reason("no address is known for the host "+lookup.Name, "correct the server in the kubeconfig")
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout():
		return reason(fmt.Sprintf("no answer within %s", cfg.Timeout),
			"check that the cluster runs and that no firewall or proxy lies between")
	default:
		return fmt.Errorf("%s of %s: %s", question, cfg.Host, oneLine(err.Error()))
	}
}

// oneLine makes a text of several lines fit into a message.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
