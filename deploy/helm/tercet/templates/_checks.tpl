{{/* Stops where what only the user knows is not said. */}}
{{- define "tercet.checked" -}}
{{- $missing := list -}}
{{- range $name := ternary (list "repository" "tag" "gpuTag") (list "repository" "tag") (eq .Values.layout "gpu-encoders") -}}
{{- if not (get $.Values.image $name) }}{{ $missing = append $missing (printf "image.%s" $name) }}{{ end -}}
{{- end -}}
{{- if $missing -}}
{{- fail (printf "%s must be set: the image that you built and pushed, as in --set image.repository=registry.example.com/tercet,image.tag=cpu%s (docs/kubernetes.md, Helm)" (join ", " $missing) (ternary ",image.gpuTag=gpu" "" (eq .Values.layout "gpu-encoders"))) -}}
{{- end -}}
{{- end -}}
