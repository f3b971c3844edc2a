package examine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/outcome"
)

// endedEarly is the message about a process that ended at its start.
func (o *operator) endedEarly(p *fixture.Process, requests int) error {
	output := p.Output()
	if strings.Contains(output, "tls.crt") || strings.Contains(output, "serving-cert") {
		return fmt.Errorf("the operator wants a certificate for its webhooks, which cert-manager would give it in a "+
			"cluster: switch the webhooks off, often by ENV=ENABLE_WEBHOOKS=false, or name their manifests in WEBHOOKS=%s",
			words(p))
	}
	if missing := missingCRD(output); missing != "" {
		return fmt.Errorf("the operator %v: %s%s", p.Exit(), missing, words(p))
	}
	if m := portTaken.FindStringSubmatch(output); m != nil && o.pod == "" {
		return fmt.Errorf("the operator %v, because another program on this machine listens on %s: end that program, or "+
			"give the operator another port in ARGS= or ENV=%s", p.Exit(), m[1], words(p))
	}
	if strings.Contains(output, "KUBERNETES_SERVICE_HOST") && o.pod == "" {
		return fmt.Errorf("the operator looks for the API server only where a pod finds it, and the lab runs it outside a "+
			"pod: give it in ARGS= its flag for a kubeconfig ($KUBECONFIG is the path) or for a run outside a cluster, or "+
			"build it with a client configuration that reads KUBECONFIG (ctrl.GetConfig or clientcmd, not "+
			"rest.InClusterConfig)%s", words(p))
	}
	if strings.Contains(output, "serviceaccount/namespace") && o.pod == "" {
		return fmt.Errorf("the operator reads its own namespace from a file that only a pod has, and the lab runs it outside a "+
			"pod: name the namespace in ENV= or ARGS=, as ENV='POD_NAMESPACE=$NAMESPACE OPERATOR_NAMESPACE=$NAMESPACE'%s",
			words(p))
	}
	if limit := limitOf(output); limit != "" {
		return fmt.Errorf("the operator %v: %s%s", p.Exit(), limit, words(p))
	}
	if commands := commandsIn(output); len(commands) > 0 && requests == 0 {
		return fmt.Errorf("the operator printed its help and %v, so nothing can be examined: it has the commands %s. Begin "+
			"ARGS= with the command that starts it, as the Deployment in its manifests does (often "+
			"config/manager/manager.yaml)", p.Exit(), strings.Join(commands, ", "))
	}
	if missing := notInPod.FindString(output); missing != "" && o.pod != "" {
		return fmt.Errorf("the operator %v, because its pod does not have a file of this machine (%s): the pod shows the "+
			"program, the libraries of the system, and each file that ARGS= and ENV= name. OUTSIDE=1 runs the program outside "+
			"a pod%s", p.Exit(), missing, words(p))
	}
	asked := "before it sent any request to the API server"
	if requests > 0 {
		asked = fmt.Sprintf("after %d requests to the API server", requests)
	}
	return fmt.Errorf("the operator %v at its start, %s, so nothing can be examined: it must be a program that runs "+
		"until it is stopped and finds the API server as in a pod; pass its settings by ARGS= and ENV=, which the "+
		"Deployment in its manifests has (often config/manager/manager.yaml)%s", p.Exit(), asked, words(p))
}

// noKind matches the error of a client for a kind that the API server does not serve.
var noKind = regexp.MustCompile(`no matches for kind \\*"(\w+)\\*" in version \\*"([\w./-]+)`)

// missingCRD names a kind that the API server does not serve, and what to do about it; empty when a text names none.
func missingCRD(text string) string {
	m := noKind.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("the CRD of %s %s is missing: add its file to CRD=, or to NEEDS= if it is the CRD of another "+
		"product", m[2], m[1])
}

// limitOf names the limit of the machine that a program has reached, and the fix; empty when its output has none. A
// program that watches a file, such as a certificate, needs an inotify instance, and each control plane has 13 of them.
func limitOf(output string) string {
	if !strings.Contains(output, "too many open files") {
		return ""
	}
	return "it reached a limit of this machine, often that of inotify: end other programs, or raise it by " +
		"`sudo sysctl fs.inotify.max_user_instances=1024`"
}

// notInPod matches the usual errors about a file.
var notInPod = regexp.MustCompile(`(?i)[^\s:]*: no such file or directory|No module named [^\n]*`)

// portTaken matches an error of Go's net package.
var portTaken = regexp.MustCompile(`listen (?:tcp|tcp4|tcp6) (\S+): bind: address already in use`)

var (
	commandList = regexp.MustCompile(`(?mi)^(?:available )?commands:\n((?:[ \t]+\S.*\n)+)`)
	commandName = regexp.MustCompile(`(?m)^[ \t]+([a-z][-\w]*)`)
)

// commandsIn are the commands that a program's help lists.
func commandsIn(help string) (names []string) {
	if list := commandList.FindStringSubmatch(help); list != nil {
		for _, m := range commandName.FindAllStringSubmatch(list[1], -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// usageLine matches the beginning of a program's help, which would hide the error.
var usageLine = regexp.MustCompile(`(?i)^\s*(usage( of)?\b|flags:|-{1,2}\w)`)

// words are the most useful lines of a process: its first error, and the last lines.
func words(p *fixture.Process) string { return usefulLines(p.Output()) }

// usefulLines leaves out the program's help, and the stack traces of its log, except the trace of a panic. The error is
// before the help or, with some libraries, behind it.
func usefulLines(output string) string {
	var all, help []string
	panicked := strings.Contains(output, "panic")
	for line := range strings.Lines(output) {
		line = shortened(outcome.LogLine(strings.TrimRight(line, "\r\n")), 500)
		switch {
		case strings.TrimSpace(line) == "", !panicked && outcome.IsTrace(line):
		case len(help) > 0 || usageLine.MatchString(line):
			help = append(help, line)
		default:
			all = append(all, line)
		}
	}
	if !slices.ContainsFunc(all, saysError.MatchString) {
		all = append(all, help[max(0, len(help)-2):]...)
	}
	if len(all) == 0 {
		return ". It printed nothing"
	}
	last := all[max(0, len(all)-6):]
	first := slices.IndexFunc(all, saysError.MatchString)
	if first >= 0 && first < len(all)-6 {
		return ". Its first error:\n  " + all[first] + "\nIts last lines:\n  " + strings.Join(last, "\n  ")
	}
	return ". Its last lines:\n  " + strings.Join(last, "\n  ")
}

var saysError = regexp.MustCompile(`(?i)\b(error|panic|fatal|failed|unable|cannot)\b`)
