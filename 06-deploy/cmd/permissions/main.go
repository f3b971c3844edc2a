// Command permissions reads manifests from standard input and the API server's audit log from a file. It reports
// whether a request of the operator was denied, and which permissions the operator did not use.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"example.com/operator-workshop/06-deploy/internal/manifests"
	"example.com/operator-workshop/06-deploy/internal/permissions"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "permissions:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("permissions", flag.ContinueOnError)
	flags.SetOutput(out)
	log := flags.String("audit-log", "", "the API server's audit log, JSON, at level Metadata or above")
	account := flags.String("account", manifests.Name+"/"+manifests.Name, "namespace/name of the ServiceAccount")
	if err := flags.Parse(args); err != nil {
		return err
	}
	namespace, name, ok := strings.Cut(*account, "/")
	if *log == "" || !ok {
		return fmt.Errorf("give --audit-log FILE, and --account NAMESPACE/NAME when it is another than %s: kubectl "+
			"kustomize config/04/default | permissions --audit-log FILE", *account)
	}
	all, err := manifests.Read(in)
	if err != nil {
		return err
	}
	granted, err := permissions.Granted(all, rbacv1.Subject{Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	file, err := os.Open(*log)
	if err != nil {
		return fmt.Errorf("read the audit log: %w: on kind it lies on the node, in the file that --audit-log-path names", err)
	}
	defer file.Close()
	requests, err := permissions.ReadAudit(file, "system:serviceaccount:"+namespace+":"+name)
	if err != nil {
		return err
	}
	return permissions.Compare(granted, requests).Report(out)
}
