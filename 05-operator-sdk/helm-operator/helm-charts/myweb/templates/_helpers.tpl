{{/* The labels that select pods: they never change. */}}
{{- define "myweb.selector" -}}
app.kubernetes.io/name: myweb
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "myweb.labels" -}}
{{ include "myweb.selector" . }}
app.kubernetes.io/part-of: operator-workshop
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
