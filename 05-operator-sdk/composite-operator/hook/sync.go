// Package hook is all the code that the author of this operator writes: a pure function from the observed state to the
// desired state. It uses no client, no cache and no queue, and imports no Kubernetes library: JSON comes in, JSON goes
// out.
package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// A Request comes from the composite controller: a MyWeb, and its existing children by name.
type Request struct {
	Parent   MyWeb `json:"parent"`
	Children struct {
		ConfigMaps  map[string]Object     `json:"ConfigMap.v1"`
		Deployments map[string]Deployment `json:"Deployment.apps/v1"`
		Services    map[string]Service    `json:"Service.v1"`
	} `json:"children"`
}

// A Response is the desired state: the status of the MyWeb, and all its children. The controller deletes an existing
// child that is missing here.
type Response struct {
	Status   Status `json:"status"`
	Children []any  `json:"children"`
}

// Sync answers a request. It uses the time only for conditions.
func Sync(request Request, now time.Time) Response {
	web := request.Parent
	deployment := request.Children.Deployments[web.Metadata.Name]
	service := request.Children.Services[web.Metadata.Name]
	desired := []Desired{configMap(web), desiredDeployment(web), desiredService(web)}
	if web.Spec.NodePortNumber == nil && service.Metadata.UID == "" && web.Status.NodePort != 0 {
		// A Service that was deleted comes back on the port that the cluster had allocated.
		desired[2]["spec"].(fields)["ports"] = []any{servicePort(&web.Status.NodePort)}
	}
	applied := request.Children.ConfigMaps[web.Metadata.Name].has(desired[0]) &&
		deployment.has(desired[1]) && service.has(desired[2])
	response := Response{Status: statusOf(web, deployment, service, applied, now)}
	for _, child := range desired {
		response.Children = append(response.Children, child)
	}
	return response
}

// A Desired child has only the fields that this operator cares about.
type Desired map[string]any

type fields = map[string]any

// digest is an annotation of each child: a digest of its desired fields. The hook compares it with that of an observed
// child to find out whether the child matches the newest spec.
const digest = "operator.k8s-summit.org/desired"

func child(web MyWeb, apiVersion, kind string, content fields) Desired {
	d := Desired{"apiVersion": apiVersion, "kind": kind}
	for name, value := range content {
		d[name] = value
	}
	labels := selector(web)
	labels["app.kubernetes.io/managed-by"] = "composite-operator"
	d["metadata"] = fields{"name": web.Metadata.Name, "labels": labels, "annotations": fields{digest: sum(d)}}
	return d
}

func configMap(web MyWeb) Desired {
	return child(web, "v1", "ConfigMap", fields{"data": fields{"index.html": web.Spec.PageContentHTML}})
}

func desiredDeployment(web MyWeb) Desired {
	nginx := fields{
		"name": "nginx", "image": web.Spec.Image,
		"ports":           []any{fields{"name": "http", "containerPort": 80}},
		"readinessProbe":  fields{"httpGet": fields{"path": "/", "port": "http"}, "periodSeconds": 2},
		"securityContext": fields{"allowPrivilegeEscalation": false, "capabilities": fields{"drop": []any{"ALL"}}},
		"volumeMounts": []any{
			fields{"name": "page", "mountPath": "/usr/share/nginx/html", "readOnly": true},
			fields{"name": "run", "mountPath": "/run"},
			fields{"name": "cache", "mountPath": "/var/cache/nginx"},
			fields{"name": "lib", "mountPath": "/var/lib/nginx"},
		},
	}
	return child(web, "apps/v1", "Deployment", fields{"spec": fields{
		"replicas": web.replicas(),
		"selector": fields{"matchLabels": selector(web)},
		"template": fields{
			// A changed page changes the template, so the Deployment replaces the pods.
			"metadata": fields{"labels": selector(web), "annotations": fields{
				"operator.k8s-summit.org/page-hash": sum(web.Spec.PageContentHTML)}},
			"spec": fields{ // meets the restricted Pod Security Standard
				"automountServiceAccountToken": false,
				"securityContext": fields{
					"runAsNonRoot": true, "runAsUser": 101, "runAsGroup": 101, // "nginx" of the official image
					"seccompProfile": fields{"type": "RuntimeDefault"},
					// nginx may listen on port 80 without root.
					"sysctls": []any{fields{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}},
				},
				"containers": []any{nginx},
				"volumes": []any{
					fields{"name": "page", "configMap": fields{"name": web.Metadata.Name}},
					fields{"name": "run", "emptyDir": fields{}},
					fields{"name": "cache", "emptyDir": fields{}},
					fields{"name": "lib", "emptyDir": fields{}},
				},
			},
		},
	}})
}

func desiredService(web MyWeb) Desired {
	return child(web, "v1", "Service", fields{"spec": fields{
		"type": "NodePort", "selector": selector(web), "ports": []any{servicePort(web.Spec.NodePortNumber)}}})
}

// servicePort names a node port when the MyWeb does. Otherwise the cluster allocates a port and keeps it.
func servicePort(number *int32) fields {
	port := fields{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}
	if number != nil {
		port["nodePort"] = *number
	}
	return port
}

func selector(web MyWeb) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": web.Metadata.Name}
}

func sum(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings, numbers, lists and maps of them: it cannot fail
	}
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:8])
}
