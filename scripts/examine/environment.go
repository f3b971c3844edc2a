package examine

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// environment are the variables of the container, and their values for its arguments.
func (k *kubelet) environment() (env []string, values map[string]string, err error) {
	values = map[string]string{}
	add := func(name, value string) {
		env, values[name] = append(env, name+"="+value), value
	}
	for _, from := range k.container.EnvFrom {
		var data map[string][]byte
		if from.ConfigMapRef != nil {
			data, err = k.must("ConfigMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		} else if from.SecretRef != nil {
			data, err = k.must("Secret", from.SecretRef.Name, from.SecretRef.Optional)
		}
		if err != nil {
			return nil, nil, err
		}
		for key, value := range data {
			add(from.Prefix+key, string(value))
		}
	}
	for _, e := range k.container.Env {
		value, known, err := expand(e.Value, values), true, error(nil)
		if e.ValueFrom != nil {
			value, known, err = k.valueOf(*e.ValueFrom)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the variable %s: %w", e.Name, err)
		}
		if known {
			add(e.Name, value)
		}
	}
	return env, values, nil
}

// valueOf is a value from another place. It is not known when an optional object or key does not exist.
func (k *kubelet) valueOf(from corev1.EnvVarSource) (value string, known bool, err error) {
	of := func(kind, name, key string, optional *bool) (string, bool, error) {
		data, err := k.must(kind, name, optional)
		content, known := data[key]
		if err == nil && !known && (optional == nil || !*optional) {
			err = fmt.Errorf("the %s %s has no key %s", kind, name, key)
		}
		return string(content), known, err
	}
	switch {
	case from.ConfigMapKeyRef != nil:
		return of("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional)
	case from.SecretKeyRef != nil:
		return of("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Optional)
	case from.FieldRef != nil:
		return k.field(from.FieldRef.FieldPath), true, nil
	case from.ResourceFieldRef != nil:
		return k.resource(*from.ResourceFieldRef), true, nil
	}
	return "", false, nil
}

var keyed = regexp.MustCompile(`^metadata\.(labels|annotations)\['([^']+)'\]$`)

// field is a field of the pod, as the downward API has it.
func (k *kubelet) field(path string) string {
	if m := keyed.FindStringSubmatch(path); m != nil {
		return map[string]map[string]string{"labels": k.self.Labels, "annotations": k.self.Annotations}[m[1]][m[2]]
	}
	all := func(values map[string]string) string {
		var lines strings.Builder
		for key, value := range values {
			fmt.Fprintf(&lines, "%s=%q\n", key, value)
		}
		return lines.String()
	}
	return map[string]string{"metadata.name": k.self.Name, "metadata.namespace": k.namespace,
		"metadata.uid": string(k.self.UID), "metadata.labels": all(k.self.Labels),
		"metadata.annotations": all(k.self.Annotations), "spec.serviceAccountName": k.serviceAccount(),
		"spec.nodeName": k.self.Spec.NodeName, "status.podIP": address(k.self).String(),
		"status.podIPs": address(k.self).String(), "status.hostIP": k.self.Status.HostIP,
		"status.hostIPs": k.self.Status.HostIP}[path]
}

// resource is a limit or a request of the container.
func (k *kubelet) resource(of corev1.ResourceFieldSelector) string {
	list, name, _ := strings.Cut(of.Resource, ".")
	quantities := map[string]corev1.ResourceList{"limits": k.container.Resources.Limits,
		"requests": k.container.Resources.Requests}[list]
	quantity, unit := quantities[corev1.ResourceName(name)], of.Divisor
	if unit.IsZero() {
		return strconv.FormatInt(quantity.Value(), 10) // a number of cores is rounded up
	}
	return strconv.FormatInt((quantity.MilliValue()+unit.MilliValue()-1)/unit.MilliValue(), 10)
}

var reference = regexp.MustCompile(`\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)`)

// expand replaces $(NAME) in an argument or a variable. $$ is a dollar sign, and an unknown name stays.
func expand(text string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := values[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}

// arguments are those of the container, without the program itself.
func (k *kubelet) arguments(values map[string]string) (args []string) {
	command := k.container.Command
	if len(command) > 0 {
		command = command[1:]
	}
	for _, arg := range slices.Concat(command, k.container.Args) {
		args = append(args, expand(arg, values))
	}
	return args
}
