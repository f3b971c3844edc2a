{{/* Who an object belongs to. */}}
{{- define "myweb-operator.labels" -}}
{{ include "myweb-operator.identity" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/part-of: operator-workshop
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* What selectors use. The names in this chart are the program's own, which looks for some of them: a cluster has
     one such operator, whatever the release is called. */}}
{{- define "myweb-operator.identity" -}}
app.kubernetes.io/name: myweb-operator
app.kubernetes.io/instance: myweb-operator
{{- end }}

{{/* metadata of an object in the release's namespace: (list . "name") */}}
{{- define "myweb-operator.metadata" -}}
name: {{ index . 1 }}
namespace: {{ (index . 0).Release.Namespace }}
labels:
  {{- include "myweb-operator.labels" (index . 0) | nindent 2 }}
{{- end }}

{{/* The objects of a file that is a copy of what the operator's source generates, with this release's labels and
     namespace: (list . "files/role.yaml") */}}
{{- define "myweb-operator.objects" -}}
{{- $root := index . 0 }}
{{- range regexSplit "(?m)^---\\s*$" ($root.Files.Get (index . 1)) -1 }}
{{- $object := fromYaml . }}
{{- if $object.kind }}
{{- $_ := set $object.metadata "labels" (merge (include "myweb-operator.labels" $root | fromYaml) ($object.metadata.labels | default dict)) }}
{{- if not (regexMatch "^Cluster|WebhookConfiguration$" $object.kind) }}
{{- $_ := set $object.metadata "namespace" $root.Release.Namespace }}
{{- end }}
{{- range $object.webhooks }}
{{- $_ := set .clientConfig.service "namespace" $root.Release.Namespace }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}

{{/* A binding of the operator's account, or another one: (dict "root" . "kind" … "name" … "role" … "in" … "who" …) */}}
{{- define "myweb-operator.binding" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .in }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "myweb-operator.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .role }}
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .who | default "myweb-operator" }}
  namespace: {{ .root.Release.Namespace }}
{{ end }}
