{{/* Addresses of the pods of StatefulSets, those of a number together: (names, number). */}}
{{- define "tercet.addresses" -}}
{{- $names := index . 0 -}}
{{- $all := list -}}
{{- range $number := until (int (index . 1)) -}}
{{- $urls := list -}}
{{- range $name := $names -}}
{{- $urls = append $urls (printf "http://%s-%d.%s:8080" $name $number $name) -}}
{{- end -}}
{{- $all = append $all (join "|" $urls) -}}
{{- end -}}
{{- join "," $all -}}
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
{{- $_ := set $settings "TERCET_ENCODER_URLS" (include "tercet.addresses" (list (list "encoder") $top.Values.encoders.maxReplicas)) -}}
{{- $_ := set $settings "TERCET_ENCODER_KEY_FILE" "/run/secrets/tercet/internal" -}}
{{- else -}}
{{- $_ := set $settings "TERCET_CHECKPOINT" $top.Values.checkpoint -}}
{{- end -}}
{{- if eq $part "router" -}}
{{- $names := ternary (list "shard" "replica") (list "shard") (eq $top.Values.layout "replicated") -}}
{{- $_ := set $settings "TERCET_SHARDS" (include "tercet.addresses" (list $names $top.Values.shards.replicas)) -}}
{{- end -}}
{{- $settings = mergeOverwrite $settings $top.Values.settings -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The name of a part's ConfigMap, which changes with what it holds, so that pods are replaced. */}}
{{- define "tercet.settings-name" -}}
{{- $prefix := dict "server" "server" "encoders" "encoder" "shards" "shard" "router" "router" -}}
{{- printf "%s-settings-%s" (get $prefix (index . 1)) (include "tercet.settings" . | sha256sum | trunc 10) -}}
{{- end -}}
