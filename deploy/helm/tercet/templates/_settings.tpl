{{/* What routers call, the servers of a shard together. (the chart's top) */}}
{{- define "tercet.shards" -}}
{{- $name := printf "%s-shard" (include "tercet.release" .) -}}
{{- if eq .Values.layout "sharded" -}}
{{- join "," (include "tercet.addresses" (list $name .Values.shards.replicas) | fromJsonArray) -}}
{{- else -}}
{{- $pairs := list -}}
{{- range $number := until (int .Values.shards.replicas) -}}
{{- $pairs = append $pairs (join "|" (include "tercet.addresses" (list (printf "%s-%d" $name $number) 2) | fromJsonArray)) -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end -}}
{{- end -}}

{{/* The settings of a part as YAML: those of its kustomization.yaml, and what values say. (the chart's top, part) */}}
{{- define "tercet.settings" -}}
{{- $top := index . 0 -}}
{{- $part := index . 1 -}}
{{- $settings := dict -}}
{{- $generated := fromYaml ($top.Files.Get (printf "parts/%s/kustomization.yaml" $part)) -}}
{{- range $literal := (first $generated.configMapGenerator).literals -}}
{{- $pair := regexSplit "=" $literal 2 -}}
{{- $_ := set $settings (first $pair) (last $pair) -}}
{{- end -}}
{{- if eq $part "encoders" -}}
{{- $_ := set $settings "TERCET_CHECKPOINT" $top.Values.encoders.checkpoint -}}
{{- else -}}
{{- if eq $top.Values.layout "gpu-encoders" -}}
{{- $name := printf "%s-encoder" (include "tercet.release" $top) -}}
{{- $most := ternary $top.Values.encoders.maxReplicas $top.Values.encoders.minReplicas $top.Values.autoscalers -}}
{{- $_ := set $settings "TERCET_ENCODER_URLS" (join "," (include "tercet.addresses" (list $name $most) | fromJsonArray)) -}}
{{- $_ := set $settings "TERCET_ENCODER_KEY_FILE" "/run/secrets/tercet/internal" -}}
{{- else -}}
{{- $_ := set $settings "TERCET_CHECKPOINT" $top.Values.checkpoint -}}
{{- end -}}
{{- if eq $part "router" -}}
{{- $_ := set $settings "TERCET_SHARDS" (include "tercet.shards" $top) -}}
{{- end -}}
{{- if and $top.Values.ingress.enabled (ne $top.Values.ingress.path "/") (ne $part "shards") -}}
{{- $_ := set $settings "TERCET_ROOT_PATH" $top.Values.ingress.path -}}
{{- end -}}
{{- $settings = mergeOverwrite $settings $top.Values.settings -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The name of a part's ConfigMap, which changes with what it holds, so that pods are replaced. */}}
{{- define "tercet.settings-name" -}}
{{- $prefix := dict "server" "server" "encoders" "encoder" "shards" "shard" "router" "router" -}}
{{- printf "%s-%s-settings-%s" (include "tercet.release" (index . 0)) (get $prefix (index . 1)) (include "tercet.settings" . | sha256sum | trunc 10) -}}
{{- end -}}

{{/* The tercet.toml of a shard and of its replica. (the chart's top, number of the shard) */}}
{{- define "tercet.roles" -}}
{{- $url := printf "%s%d" (index . 0).Values.replicas.follow (index . 1) -}}
0.toml: {{ printf "publish_url = %q\npublish_keep = 3" $url | toJson }}
1.toml: {{ printf "follow = %q" $url | toJson }}
{{- end -}}

{{- define "tercet.roles-name" -}}
{{- printf "%s-shard-roles-%d-%s" (include "tercet.release" (index . 0)) (index . 1) (include "tercet.roles" . | sha256sum | trunc 10) -}}
{{- end -}}
