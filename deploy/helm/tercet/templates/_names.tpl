{{/* What names of a release begin with. A StatefulSet's name with the hash that its pods bear has 63 letters at most. */}}
{{- define "tercet.release" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the part that clients call. */}}
{{- define "tercet.clients" -}}
{{- include "tercet.release" . }}{{ if has .Values.layout (list "sharded" "replicated") }}-router{{ end -}}
{{- end -}}

{{/* The Secret with keys. */}}
{{- define "tercet.secret" -}}
{{- .Values.secret | default (printf "%s-keys" (include "tercet.release" .)) -}}
{{- end -}}

{{/* The account that pods run as; "" is the namespace's own. */}}
{{- define "tercet.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "tercet.release" .) "" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* A file of deploy/kubernetes/parts with names and labels of this release. (the chart's top, path, what follows names) */}}
{{- define "tercet.part" -}}
{{- $release := include "tercet.release" (index . 0) -}}
{{- $names := `(?m)(^ +name|serviceName|, name|app\.kubernetes\.io/(?:name|part-of)): ` -}}
{{- $text := (index . 0).Files.Get (index . 1) -}}
{{- $text = regexReplaceAll (print $names `tercet\b`) $text (printf "${1}: %s" $release) -}}
{{- regexReplaceAll (print $names `((?:to-)?(?:shard|router|encoder)\b)`) $text (printf "${1}: %s-${2}%s" $release (index . 2)) -}}
{{- end -}}

{{/* Addresses of all pods of a StatefulSet: (name, number). */}}
{{- define "tercet.addresses" -}}
{{- $urls := list -}}
{{- range $number := until (int (index . 1)) -}}
{{- $urls = append $urls (printf "http://%s-%d.%s:8080" (index $ 0) $number (index $ 0)) -}}
{{- end -}}
{{- toJson $urls -}}
{{- end -}}
