#!/usr/bin/env bash
# Stage 0: an operator in a shell. For each MyWeb that is created or changed it applies the three children.
# `kubectl get --watch` is the watch, `kubectl apply` the write.
set -u
children='apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: META, data: {index.html: {{ printf "%q" (or .spec.pageContentHtml "") }}}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: META
  spec:
    replicas: {{ .spec.replicas }}
    selector: {matchLabels: LABELS}
    template:
      metadata: {labels: LABELS}
      spec:
        containers:
        - {name: nginx, image: "{{ .spec.image }}", volumeMounts: [{name: page, mountPath: /usr/share/nginx/html}]}
        volumes: [{name: page, configMap: {name: "{{ .metadata.name }}"}}]
- apiVersion: v1
  kind: Service
  metadata: META
  spec: {type: NodePort, selector: LABELS, ports: [{port: 80{{ with .spec.nodePortNumber }}, nodePort: {{ . }}{{ end }}}]}
'
labels='{app.kubernetes.io/name: myweb, app.kubernetes.io/instance: "{{ .metadata.name }}"}'
meta='{name: "{{ .metadata.name }}", labels: LABELS, ownerReferences: [{apiVersion: operator.k8s-summit.org/v1, kind: MyWeb,
    name: "{{ .metadata.name }}", uid: "{{ .metadata.uid }}", controller: true}]}'
children=${children//META/$meta}
children=${children//LABELS/$labels}

kubectl get mywebs --all-namespaces --watch -o jsonpath='{.metadata.namespace} {.metadata.name}{"\n"}' |
  while read -r namespace name; do
    kubectl --namespace "$namespace" get myweb "$name" -o go-template="$children" </dev/null |
      kubectl --namespace "$namespace" apply -f -
  done
