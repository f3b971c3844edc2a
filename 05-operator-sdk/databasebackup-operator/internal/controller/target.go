package controller

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// observeTarget reads the StatefulSet and the Service of a target.
func (r *Base) observeTarget(
	ctx context.Context, namespace string, ref *databasesv1.TargetReference, o *observed,
) (err error) {
	if ref == nil {
		return nil
	}
	if o.set, err = find(ctx, r.Client, namespace, ref.Name, &appsv1.StatefulSet{}); err != nil {
		return err
	}
	o.service, err = find(ctx, r.Client, namespace, serviceOf(ref), &corev1.Service{})
	return err
}

func serviceOf(ref *databasesv1.TargetReference) string { return cmp.Or(ref.ServiceName, ref.Name) }

// missingTarget explains why no Job may connect to a target; it is nil when the target exists. A Job sends the password
// to the host that targetRef names. So no Job runs until this host is a Service in the same namespace, of a type that
// does not lead to another host.
func missingTarget(ref *databasesv1.TargetReference, o observed) *explanation {
	message := ""
	switch service := serviceOf(ref); {
	case o.set == nil:
		message = fmt.Sprintf("StatefulSet %s does not exist", ref.Name)
	case o.service == nil:
		message = fmt.Sprintf("Service %s does not exist", service)
	case o.service.Spec.Type == corev1.ServiceTypeExternalName:
		message = fmt.Sprintf("Service %s is of type ExternalName, which leads to another host: "+
			"name a Service of the StatefulSet", service)
	default:
		return nil
	}
	return &explanation{databasesv1.ReasonTargetNotFound, message}
}

// blockedTarget explains why a target cannot be backed up, nil when it is ready.
func blockedTarget(b *databasesv1.DatabaseBackup, o observed) *explanation {
	ref := b.Spec.TargetRef
	if ref == nil {
		return new(explain(databasesv1.ReasonIncompleteSpec, "spec.targetRef is missing"))
	}
	if missing := missingTarget(ref, o); missing != nil {
		return missing
	}
	if o.set.Status.ReadyReplicas == 0 {
		return new(explain(databasesv1.ReasonTargetNotReady, "StatefulSet %s has no ready pod", ref.Name))
	}
	return nil
}
