package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// GrantAdmin lets a user do everything.
func (w *World) GrantAdmin(ctx context.Context, user string) error {
	if err := w.bind(ctx, user, "", rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"}); err != nil {
		return fmt.Errorf("grant %s everything: %w", user, err)
	}
	all := []string{"*"}
	return w.awaitAllowed(ctx, user, "", rbacv1.PolicyRule{Verbs: all, APIGroups: all, Resources: all})
}

// Grant gives a user the permissions of the ClusterRoles and Roles in a file: the former everywhere, the
// latter in the namespace. Roles of the same names that the user has are replaced. Whatever else the file
// holds is left out. It returns when the API server acts by it.
func (w *World) Grant(ctx context.Context, user, namespace, file string) error {
	roles, err := readRoles(file)
	if err != nil {
		return err
	}
	for _, r := range roles {
		r.Name = user + "-" + r.Name
		in := ""
		if r.Kind == "Role" {
			in = namespace
		}
		if err := w.putRole(ctx, in, r); err != nil {
			return fmt.Errorf("grant %s %s of %s: %w", user, r.Name, file, err)
		}
		if err := w.bind(ctx, user, in, rbacv1.RoleRef{Kind: r.Kind, Name: r.Name}); err != nil {
			return fmt.Errorf("grant %s %s of %s: %w", user, r.Name, file, err)
		}
		for _, rule := range r.Rules {
			if err := w.awaitAllowed(ctx, user, in, rule); err != nil {
				return fmt.Errorf("grant %s %s of %s: %w", user, r.Name, file, err)
			}
		}
	}
	return nil
}

// awaitAllowed waits until the API server lets a user do the first thing that a rule allows: it learns of
// roles through watches of its own.
func (w *World) awaitAllowed(ctx context.Context, user, namespace string, rule rbacv1.PolicyRule) error {
	if len(rule.Resources) == 0 { // paths, not resources
		return nil
	}
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	ask := &authv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource,
		Subresource: subresource}
	if len(rule.ResourceNames) > 0 {
		ask.Name = rule.ResourceNames[0]
	}
	for {
		answer, err := w.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authv1.SubjectAccessReview{
			Spec: authv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: ask}}, metav1.CreateOptions{})
		if err != nil || answer.Status.Allowed {
			return err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// Revoke takes back what Grant gave from the same file. The API server acts by it a moment later.
func (w *World) Revoke(ctx context.Context, user, namespace, file string) error {
	roles, err := readRoles(file)
	if err != nil {
		return err
	}
	for _, r := range roles {
		name := user + "-" + r.Name
		if r.Kind == "Role" {
			err = errors.Join(err, w.Kube.RbacV1().RoleBindings(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
		} else {
			err = errors.Join(err, w.Kube.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}))
		}
	}
	return err
}

// readRoles returns the roles of both kinds in a file.
func readRoles(file string) (roles []rbacv1.Role, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for documents := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		var r rbacv1.Role
		if err := documents.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if r.Kind == "Role" || r.Kind == "ClusterRole" {
			roles = append(roles, r)
		}
	}
	if len(roles) == 0 {
		return nil, fmt.Errorf("%s holds no role", file)
	}
	return roles, nil
}

// putRole makes a role what is given; without a namespace it is a ClusterRole.
func (w *World) putRole(ctx context.Context, namespace string, r rbacv1.Role) error {
	meta := metav1.ObjectMeta{Name: r.Name}
	if namespace == "" {
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: r.Rules}
		_, err := w.Kube.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = w.Kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
		}
		return err
	}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: r.Rules}
	_, err := w.Kube.RbacV1().Roles(namespace).Update(ctx, role, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = w.Kube.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{})
	}
	return err
}

// bind gives a user a role, everywhere or in a namespace. It is no error that the user has it already.
func (w *World) bind(ctx context.Context, user, namespace string, role rbacv1.RoleRef) (err error) {
	role.APIGroup = rbacv1.GroupName
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	meta := metav1.ObjectMeta{Name: role.Name}
	if role.Name == "cluster-admin" {
		meta.Name = user + "-admin"
	}
	if namespace == "" {
		_, err = w.Kube.RbacV1().ClusterRoleBindings().Create(ctx,
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
	} else {
		_, err = w.Kube.RbacV1().RoleBindings(namespace).Create(ctx,
			&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
