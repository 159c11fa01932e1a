{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "weir.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "weir.shared" -}}
{{- if or .Values.checkpoints.claim .Values.checkpoints.storageClass }}true{{ end }}
{{- end }}

{{- define "weir.claim" -}}
{{ .Values.checkpoints.claim | default (printf "%s-checkpoints" .Release.Name) }}
{{- end }}

{{- define "weir.master" -}}
k8s://https://kubernetes.default.svc:443
{{- end }}

{{/* What every pod of Weir has: the image's user, no rights, no token of the API. */}}
{{- define "weir.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
initContainers:
  # The root is read-only, and compiled planners need a folder that their user can write.
  - name: cache
    {{- include "weir.container" . | nindent 4 }}
    command: [cp, --recursive, /var/cache/weir/numba, /cache]
    resources: {requests: {cpu: 20m, memory: 16Mi}, limits: {memory: 128Mi}}
    volumeMounts:
      - {name: cache, mountPath: /cache}
{{- end }}

{{- define "weir.container" -}}
image: {{ include "weir.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Libraries of Spark are unpacked and loaded in /tmp. */}}
{{- define "weir.mounts" -}}
- {name: data, mountPath: /var/lib/weir}
- {name: cache, mountPath: /var/cache/weir}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "weir.volumes" -}}
- {name: cache, emptyDir: {}}
- {name: tmp, emptyDir: {}}
{{- end }}

{{- define "weir.secretVolume" -}}
- name: secrets
  secret: {secretName: {{ .Values.secret | quote }}, defaultMode: 0440}
{{- end }}

{{- define "weir.environment" -}}
# The volume's root belongs to root; Weir creates its own folder there.
- {name: WEIR_DATA, value: /var/lib/weir/data}
- {name: DATABASE_URL_FILE, value: /run/secrets/database_url}
- {name: REDIS_URL_FILE, value: /run/secrets/redis_url}
- {name: WEIR_SECRET_KEY_FILE, value: /run/secrets/secret_key}
- name: WEIR_ALLOWED_HOSTS
  value: {{ concat .Values.hosts (list (printf "%s-web" .Release.Name) "localhost") | join "," | quote }}
- {name: WEIR_HTTPS, value: {{ ternary "1" "0" (ne .Values.ingress.tlsSecret "") | quote }}}
- {name: WEIR_TRUSTED_PROXIES, value: {{ join "," .Values.ingress.trustedProxies | quote }}}
- name: WEIR_DESTINATIONS
  value: {{ concat .Values.destinations (ternary (list (include "weir.master" .)) list .Values.spark.kubernetes) | join " " | quote }}
{{- range $name, $value := .Values.environment }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{/* A process with a heartbeat: . is a dict of the root and the process's name. */}}
{{- define "weir.probes" -}}
{{- $check := printf "exec: {command: [weir, process, %s, --check]}" .name }}
{{- if eq .name "web" }}
{{- $check = "httpGet: {path: /healthz, port: http, httpHeaders: [{name: Host, value: localhost}]}" }}
readinessProbe:
  {{ $check }}
  timeoutSeconds: 5
{{- end }}
startupProbe:
  {{ $check }}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 30
livenessProbe:
  {{ $check }}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 9
{{- end }}

{{- define "weir.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "weir.selector" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .name }}
{{- end }}
