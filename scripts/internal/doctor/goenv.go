package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Flags of GOFLAGS that change which code is compiled. The value is the harmless setting, if any.
var strayGoFlags = map[string]string{
	"mod": "readonly", "modfile": "", "overlay": "", "tags": "",
	"race": "false", "msan": "false", "asan": "false",
}

func checkGoFlags(ctx context.Context, m Machine) Finding {
	value, err := m.goEnv(ctx, "GOFLAGS")
	if err != nil {
		return notApplicable("not examined: %s", oneLine(err.Error()))
	}
	var stray []string
	for word := range strings.FieldsSeq(value) {
		word = strings.Trim(word, `'"`)
		name, setting, given := strings.Cut(strings.TrimLeft(word, "-"), "=")
		harmless, listed := strayGoFlags[name]
		if listed && (!given || setting != harmless) {
			stray = append(stray, word)
		}
	}
	if len(stray) == 0 {
		if value == "" {
			return okay("not set")
		}
		return okay("%s", value)
	}
	source, fix := "the go env file", "go env -u GOFLAGS"
	if m.Getenv("GOFLAGS") != "" {
		source, fix = "the environment", "unset GOFLAGS"
	}
	return Finding{Status: Warning,
		What: fmt.Sprintf("GOFLAGS from %s holds %s.", source, strings.Join(stray, " ")),
		Why: "The workshop's own builds set their flags themselves, but a `go test ./...` typed by hand " +
			"obeys these: it compiles other code, looks for a vendor folder, changes go.mod or needs a " +
			"C compiler.",
		Fix: fix}
}

func checkGoWork(ctx context.Context, m Machine) Finding {
	value, err := m.goEnv(ctx, "GOWORK")
	if err != nil {
		return notApplicable("not examined: %s", oneLine(err.Error()))
	}
	if value == "" || value == "off" {
		return okay("no workspace around the repository")
	}
	return Finding{Status: Warning,
		What: fmt.Sprintf("The workspace %s covers the repository.", value),
		Why: "Each chapter is a module that stands alone. Inside a workspace that does not list it, " +
			"`go test ./...` typed in a chapter ends with \"directory prefix . does not contain modules " +
			"listed in go.work\".",
		Fix: "export GOWORK=off"}
}

const proxyWhy = "Every program of the workshop, the control plane too, is built from Go modules."

const proxyFix = "Check the network (behind an HTTP proxy: HTTPS_PROXY; with its own certificates: " +
	"SSL_CERT_FILE), or go back to Go's default module proxy:\ngo env -u GOPROXY\n" +
	"and, if the environment sets it:\nunset GOPROXY"

// errNotThere is an answer after which the go command tries the next proxy of a comma list.
var errNotThere = errors.New("does not have it")

// checkModuleProxy goes through GOPROXY as the go command does (https://go.dev/ref/mod#environment-variables):
// behind a comma the next entry is tried only after 404 or 410, behind a bar after any error.
func checkModuleProxy(ctx context.Context, m Machine) Finding {
	setting, err := m.goEnv(ctx, "GOPROXY")
	if err != nil {
		return notApplicable("not examined: %s", oneLine(err.Error()))
	}
	failed := Finding{Status: Failure, Why: proxyWhy, Fix: proxyFix}
	if m.inModuleCache(ctx) {
		failed.Status = Warning
		failed.Why += " Go's module cache holds " + m.Probe + " already, so it may hold the rest."
	}
	var tried []string
	for rest := setting; rest != ""; {
		entry, onAnyError := rest, false
		if i := strings.IndexAny(rest, ",|"); i >= 0 {
			entry, onAnyError, rest = rest[:i], rest[i] == '|', rest[i+1:]
		} else {
			rest = ""
		}
		switch entry = strings.TrimSpace(entry); entry {
		case "":
			continue
		case "off":
			tried = append(tried, "GOPROXY=off: works only when the module cache is warm.")
			failed.What = strings.Join(tried, " ")
			failed.Fix = "go env -u GOPROXY\n" +
				"and, if the environment sets it:\nunset GOPROXY"
			return failed
		case "direct":
			return direct(tried)
		}
		err := m.askProxy(ctx, entry)
		if err == nil {
			return okay("%s gives %s", showProxy(entry), m.Probe)
		}
		tried = append(tried, fmt.Sprintf("%s: %s.", showProxy(entry), oneLine(err.Error())))
		if !onAnyError && !errors.Is(err, errNotThere) {
			break
		}
	}
	failed.What = strings.Join(tried, " ")
	if failed.What == "" {
		failed.What = "GOPROXY names no proxy."
	}
	return failed
}

func direct(tried []string) Finding {
	return Finding{Status: Warning,
		What: strings.Join(append(tried, "GOPROXY leads to direct: modules come from their repositories."), " "),
		Why: "Without a module proxy, Go fetches k8s.io/kubernetes and every other dependency with git " +
			"from the host of each: slow, and all of those hosts must be reachable.",
		Fix: "If you can reach it, go back to Go's default module proxy:\ngo env -u GOPROXY\n" +
			"and, if the environment sets it:\nunset GOPROXY"}
}

// askProxy asks one proxy of GOPROXY for m.Probe. The error names neither URL nor credentials.
func (m Machine) askProxy(ctx context.Context, proxy string) error {
	// The go command's rule: a word with a dot or slash and no scheme is a host.
	if strings.ContainsAny(proxy, ".:/") && !strings.Contains(proxy, ":/") && !filepath.IsAbs(proxy) {
		proxy = "https://" + proxy
	}
	base, err := url.Parse(proxy)
	if err != nil {
		return errors.New("not a URL")
	}
	module, version, _ := strings.Cut(m.Probe, "@")
	switch base.Scheme {
	case "file":
		if info, err := os.Stat(base.Path); err != nil || !info.IsDir() {
			return errors.New("the folder does not exist")
		}
		if _, err := os.Stat(filepath.Join(base.Path, module, "@v", version+".info")); err != nil {
			return fmt.Errorf("%w (%s)", errNotThere, m.Probe)
		}
		return nil
	case "http", "https":
		return m.get(ctx, base.JoinPath(module, "@v", version+".info").String(), version)
	}
	return errors.New("the scheme is none of https, http and file")
}

func (m Machine) get(ctx context.Context, address, version string) error {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("not a URL")
	}
	response, err := m.Client.Do(request)
	if err != nil {
		// The outer error repeats the URL, with the user's name.
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("no answer within %s", patience)
		}
		return fmt.Errorf("unreachable: %w", err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("%w (%s, HTTP %d)", errNotThere, m.Probe, response.StatusCode)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return fmt.Errorf("asks for credentials (HTTP %d); the go command reads them from .netrc or GOAUTH, "+
			"which this check does not", response.StatusCode)
	default:
		return fmt.Errorf("answers HTTP %d", response.StatusCode)
	}
	var info struct{ Version string }
	// A login page of a hotel's or company's network also answers 200.
	if json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&info) != nil || info.Version != version {
		return errors.New("answers with something that is not a module: a login page, perhaps")
	}
	return nil
}

// showProxy is what may be printed of a GOPROXY entry: no user, no query.
func showProxy(proxy string) string {
	if parsed, err := url.Parse(proxy); err == nil && parsed.Host != "" {
		return parsed.Scheme + "://" + parsed.Host + parsed.Path
	}
	return proxy
}

func (m Machine) inModuleCache(ctx context.Context) bool {
	cache, err := m.goEnv(ctx, "GOMODCACHE")
	if err != nil || cache == "" {
		return false
	}
	module, version, _ := strings.Cut(m.Probe, "@")
	_, err = os.Stat(filepath.Join(cache, "cache", "download", module, "@v", version+".info"))
	return err == nil
}
