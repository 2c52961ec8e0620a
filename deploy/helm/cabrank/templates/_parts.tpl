{{- define "cabrank.selector" -}}
app.kubernetes.io/name: cabrank
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cabrank.labels" -}}
{{ include "cabrank.selector" . }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Nobody is root, and nothing can be written but where a volume is. */}}
{{- define "cabrank.security" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* The container in which cabrank runs: its ports, probes and files. */}}
{{- define "cabrank.container" -}}
env:
- {name: CABRANK_CONTROL, value: /run/cabrank/control.sock} # for kubectl exec … cabrank status
{{- if eq .Values.mode "pod" }}
{{- include "cabrank.env" . }}
{{- end }}
ports:
- {name: grpc, containerPort: 8080}
- {name: metrics, containerPort: 9394}
- {name: probes, containerPort: 5555}
startupProbe: {httpGet: {path: /startup, port: probes}, periodSeconds: 2, failureThreshold: 60}
readinessProbe: {httpGet: {path: /readiness, port: probes}, periodSeconds: 2}
livenessProbe: {httpGet: {path: /liveness, port: probes}, periodSeconds: 10}
volumeMounts:
- {name: config, mountPath: /etc/cabrank, readOnly: true}
- {name: run, mountPath: /run/cabrank}
{{- end }}

{{- define "cabrank.env" -}}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}
