package doctor

import "context"

// check is a row of the table that Run processes. Why and fix belong to its findings that ask for an action. A check
// with a second fault, or a fix that depends on the machine, sets those of the finding.
type check struct {
	name     string
	find     func(context.Context, Machine) Diagnosis
	why, fix string
}

// checks lists the checks of Run, in the order of its findings.
var checks = []check{
	{"Go", checkGo,
		"Everything is built from source, the control plane too; go.mod asks for Go 1.26.",
		"Install Go 1.26 or newer: https://go.dev/dl/\n" +
			"or, from Go 1.21 on, let this one fetch it:\nexport GOTOOLCHAIN=auto"},
	{"git", checkGit,
		"The workshop applies patches and finds its files with it.",
		"Install it with your package manager, such as `apt-get install git`, or on macOS:\nxcode-select --install"},
	{"Lines", checkLines,
		"Git for Windows converts them when core.autocrlf is true. bash takes the carriage return for a part of a " +
			"word: `bash\\r: No such file or directory`.",
		"Commit or stash your changes, which this would remove (work/ stays), then:\n" +
			"git config core.autocrlf false && git rm -rq --cached . && git reset -q --hard"},
	{"Variables", checkVariables,
		"A `go build` or `go run` that you type from a page fails, or its program does not start.", ""},
	{"Disk", checkDisk,
		"The programs in bin/ take about 600 MB, Go's build cache and module cache about 6 GB.",
		"Free some space, or let Go's caches lie on a larger disk:\n" +
			"go env -w GOCACHE=/larger/disk/gocache GOMODCACHE=/larger/disk/gomod"},
	{"Memory", checkMemory,
		"Compiling kube-apiserver and running a control plane beside it take 2 to 4 GiB; with less, " +
			"the kernel kills the compiler (\"signal: killed\").",
		"Close other programs, or give the virtual machine or container more memory. While building, " +
			"fewer compilers at once take less:\nexport GOMAXPROCS=1"},
	{"Ports", checkPorts,
		"etcd, kube-apiserver and every operator listen on 127.0.0.1.",
		"Leave the sandbox that forbids it, or bring up the loopback interface:\nsudo ip link set lo up"},
	{"Proxies", checkProxies,
		"Programs written in Go, kubectl and the operators among them, never ask a proxy for 127.0.0.1. " +
			"curl and other clients do: what a page fetches from 127.0.0.1 with curl goes to the proxy and " +
			"fails. kind hands these variables to its nodes and adds the cluster's own networks itself.",
		"export no_proxy=\"127.0.0.1,localhost,::1,${no_proxy:-$NO_PROXY}\"\nexport NO_PROXY=\"$no_proxy\""},
	{"Docker", checkDocker,
		"The kind environment runs in Docker: make kind-up, make kind-test and each chapter's kind.sh. " +
			"Everything else works without.",
		"Start Docker again (Docker Desktop, or `sudo systemctl restart docker`); on Linux your " +
			"user must be in the group docker. Then see that this answers:\ndocker info"},
	{"inotify", checkInotify,
		"The containers of a kind node share these limits with your own programs; above them, the " +
			"kubelet, kube-proxy or the workload stop with \"too many open files\". Only kind is affected.", ""},
}
