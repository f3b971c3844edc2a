package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
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

// findSelf returns an error when the API server does not have the pod of this process.
func findSelf(ctx context.Context, kube kubernetes.Interface, name string) error {
	self, err := kube.CoreV1().Pods(inPodNamespace()).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if owner := metav1.GetControllerOf(self); owner == nil || owner.Kind != "ReplicaSet" {
		return fmt.Errorf("the pod %s has the owner %v", name, owner)
	}
	addresses, err := net.LookupHost(os.Getenv("HOSTNAME"))
	if err != nil || !slices.Equal(addresses, []string{self.Status.PodIP}) {
		return fmt.Errorf("the pod %s has the address %s, and this process %v: %w", name, self.Status.PodIP, addresses, err)
	}
	return nil
}

// holdsLease returns an error when this process may no longer be the leader. Without a leader election it is nil.
var holdsLease = func() error { return nil }

// lead works while this process is the leader. Its lease is in the namespace.
func lead(parent context.Context, kube kubernetes.Interface, namespace, fault string,
	work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	var failed error
	config := leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{Client: kube.CoordinationV1(),
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "testoperator"},
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity(fault)}},
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second,
		RetryPeriod: 500 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				if fault == stubborn {
					ctx = parent
				}
				failed = work(ctx)
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	}
	if fault == usualLease { // as controller-runtime has them
		config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = 15*time.Second, 10*time.Second, 2*time.Second
	}
	elector, err := leaderelection.NewLeaderElector(config)
	if err != nil {
		return err
	}
	if fault != stubborn && fault != usualLease {
		holdsLease = func() error {
			if !elector.IsLeader() {
				return errors.New("the lease is lost")
			}
			return elector.Check(0)
		}
	}
	elector.Run(ctx)
	if fault == stubborn {
		<-parent.Done()
	}
	return failed
}
