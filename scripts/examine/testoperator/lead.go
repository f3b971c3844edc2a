package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// identity is the name of this replica in the lease.
func identity(fault string) string {
	host, _ := os.Hostname()
	switch fault {
	case byHost:
		return host
	case oneName:
		return "testoperator"
	}
	return fmt.Sprint(host, "_", os.Getpid())
}

// inPodNamespace is the namespace of the pod; empty outside a pod.
func inPodNamespace() string {
	data, _ := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	return string(data)
}

// lead works while this process is the leader. Its lease is in the namespace.
func lead(ctx context.Context, kube kubernetes.Interface, namespace, fault string,
	work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{Client: kube.CoordinationV1(),
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "testoperator"},
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity(fault)}},
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second,
		RetryPeriod: 500 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { failed = work(ctx); cancel() },
			OnStoppedLeading: func() {},
		},
	})
	return failed
}
