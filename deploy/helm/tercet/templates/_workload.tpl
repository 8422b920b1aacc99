{{/* A Deployment or StatefulSet with what every pod has, and with what values say. (the chart's top, part, manifest) */}}
{{- define "tercet.workload" -}}
{{- $top := index . 0 -}}
{{- $part := index . 1 -}}
{{- $found := index . 2 -}}
{{- $values := get $top.Values (get (dict "router" "routers") $part | default $part) -}}
{{- $common := (fromYaml ($top.Files.Get "parts/pods/pod.yaml")).spec.template -}}
{{- $template := $found.spec.template -}}
{{- $container := first $template.spec.containers -}}
{{- $shared := first $common.spec.containers -}}
{{- $mounts := concat $container.volumeMounts $shared.volumeMounts -}}
{{- $volumes := concat $template.spec.volumes $common.spec.volumes -}}
{{- $container = mergeOverwrite $container $shared -}}
{{- $_ := set $container "volumeMounts" $mounts -}}
{{- $_ := set $container "image" (get $top.Values.images (trimPrefix "tercet:" $container.image)) -}}
{{- $_ := set (first $container.envFrom).configMapRef "name" (include "tercet.settings-name" (list $top (ternary "shards" $part (eq $part "replicas")))) -}}
{{- if and (eq $part "shards") (eq $top.Values.layout "replicated") -}}
{{- $number := dict "name" "SHARD" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.labels['apps.kubernetes.io/pod-index']")) -}}
{{- $url := dict "name" "TERCET_PUBLISH_URL" "value" (printf "%s$(SHARD)" $top.Values.replicas.follow) -}}
{{- $keep := dict "name" "TERCET_PUBLISH_KEEP" "value" "3" -}}
{{- $_ := set $container "env" (list $number $url $keep) -}}
{{- end -}}
{{- if $values.resources -}}
{{- $_ := set $container "resources" $values.resources -}}
{{- end -}}
{{- range $volume := $volumes -}}
{{- if hasKey $volume "secret" -}}
{{- $_ := set $volume.secret "secretName" $top.Values.secret -}}
{{- end -}}
{{- end -}}
{{- $spec := mergeOverwrite $template.spec (omit $common.spec "containers" "volumes") -}}
{{- $_ := set $spec "containers" (list $container) -}}
{{- $_ := set $spec "volumes" $volumes -}}
{{- if $top.Values.pullSecrets -}}
{{- $named := list -}}
{{- range $top.Values.pullSecrets -}}{{- $named = append $named (dict "name" .) -}}{{- end -}}
{{- $_ := set $spec "imagePullSecrets" $named -}}
{{- end -}}
{{- $_ := set $template.metadata "labels" (merge $template.metadata.labels $common.metadata.labels) -}}
{{- range $claim := $found.spec.volumeClaimTemplates -}}
{{- $_ := set $claim.spec.resources.requests "storage" $values.storage -}}
{{- if $top.Values.storageClass -}}
{{- $_ := set $claim.spec "storageClassName" $top.Values.storageClass -}}
{{- end -}}
{{- end -}}
{{- if eq $part "replicas" -}}
{{- $_ := set $found.spec "replicas" $top.Values.shards.replicas -}}
{{- $_ := set (last $container.env) "value" (printf "%s$(SHARD)" $values.follow) -}}
{{- else if hasKey $values "replicas" -}}
{{- $_ := set $found.spec "replicas" $values.replicas -}}
{{- else if and (hasKey $values "minReplicas") (not $top.Values.autoscalers) -}}
{{- $_ := set $found.spec "replicas" $values.minReplicas -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}
