{{/* A Deployment or StatefulSet with what every pod has, and with what values say. (the chart's top, part, manifest) */}}
{{- define "tercet.workload" -}}
{{- $top := index . 0 -}}
{{- $part := index . 1 -}}
{{- $found := index . 2 -}}
{{- $values := get $top.Values (get (dict "router" "routers") $part | default $part) -}}
{{- $common := (fromYaml (include "tercet.part" (list $top "parts/pods/pod.yaml" ""))).spec.template -}}
{{- $template := $found.spec.template -}}
{{- $container := first $template.spec.containers -}}
{{- $shared := first $common.spec.containers -}}
{{- $mounts := concat $container.volumeMounts $shared.volumeMounts -}}
{{- $volumes := concat $template.spec.volumes $common.spec.volumes -}}
{{- $container = mergeOverwrite $container $shared -}}
{{- $_ := set $container "volumeMounts" $mounts -}}
{{- $tag := ternary $top.Values.image.gpuTag $top.Values.image.tag (eq $container.image "tercet:gpu") -}}
{{- $_ := set $container "image" (printf "%s:%s" $top.Values.image.repository $tag) -}}
{{- if $top.Values.image.pullPolicy -}}
{{- $_ := set $container "imagePullPolicy" $top.Values.image.pullPolicy -}}
{{- end -}}
{{- range $source := $container.envFrom -}}
{{- if hasKey $source "configMapRef" -}}
{{- $_ := set $source.configMapRef "name" (include "tercet.settings-name" (list $top $part)) -}}
{{- else -}}
{{- $_ := set $source.secretRef "name" $top.Values.storeSecret -}}
{{- end -}}
{{- end -}}
{{- if $values.resources -}}
{{- $_ := set $container "resources" $values.resources -}}
{{- end -}}
{{- range $volume := $volumes -}}
{{- if hasKey $volume "secret" -}}
{{- $_ := set $volume.secret "secretName" (include "tercet.secret" $top) -}}
{{- end -}}
{{- end -}}
{{- $spec := mergeOverwrite $template.spec (omit $common.spec "containers" "volumes") -}}
{{- $_ := set $spec "containers" (list $container) -}}
{{- $_ := set $spec "volumes" $volumes -}}
{{- with include "tercet.account" $top -}}{{- $_ := set $spec "serviceAccountName" . -}}{{- end -}}
{{- if $top.Values.pullSecrets -}}
{{- $named := list -}}
{{- range $top.Values.pullSecrets -}}{{- $named = append $named (dict "name" .) -}}{{- end -}}
{{- $_ := set $spec "imagePullSecrets" $named -}}
{{- end -}}
{{- $_ := set $template.metadata "labels" (merge $template.metadata.labels $common.metadata.labels) -}}
{{- $placed := dict -}}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "podAnnotations" -}}
{{- $_ := set $placed $name (get $values $name | default (get $top.Values $name)) -}}
{{- end -}}
{{- range $name := list "nodeSelector" "affinity" -}}
{{- $merged := mergeOverwrite (get $spec $name | default dict) (get $placed $name) -}}
{{- if $merged -}}{{- $_ := set $spec $name $merged -}}{{- end -}}
{{- end -}}
{{- $tolerations := concat ($spec.tolerations | default list) $placed.tolerations -}}
{{- if $tolerations -}}{{- $_ := set $spec "tolerations" $tolerations -}}{{- end -}}
{{- if $placed.topologySpreadConstraints -}}
{{- $constraints := list -}}
{{- range $constraint := $placed.topologySpreadConstraints -}}
{{- $constraints = append $constraints (merge (deepCopy $constraint) (dict "labelSelector" $found.spec.selector)) -}}
{{- end -}}
{{- $_ := set $spec "topologySpreadConstraints" $constraints -}}
{{- end -}}
{{- if $placed.podAnnotations -}}{{- $_ := set $template.metadata "annotations" $placed.podAnnotations -}}{{- end -}}
{{- range $claim := $found.spec.volumeClaimTemplates -}}
{{- $_ := set $claim.spec.resources.requests "storage" $values.storage -}}
{{- if $top.Values.storageClass -}}
{{- $_ := set $claim.spec "storageClassName" $top.Values.storageClass -}}
{{- end -}}
{{- end -}}
{{- if hasKey $values "replicas" -}}
{{- $_ := set $found.spec "replicas" $values.replicas -}}
{{- else if and (hasKey $values "minReplicas") (not $top.Values.autoscalers) -}}
{{- $_ := set $found.spec "replicas" $values.minReplicas -}}
{{- end -}}
{{- end -}}

{{/* Gives a shard's StatefulSet a second pod, its replica, and a tercet.toml to each. (the chart's top, manifest, number) */}}
{{- define "tercet.paired" -}}
{{- $top := index . 0 -}}
{{- $found := index . 1 -}}
{{- $pair := (fromYaml (include "tercet.part" (list $top "parts/replicas/pair.yaml" (printf "-%d" (index . 2))))).spec -}}
{{- $spec := $found.spec.template.spec -}}
{{- $container := first $spec.containers -}}
{{- $added := first $pair.template.spec.containers -}}
{{- $_ := set (first $pair.template.spec.volumes).configMap "name" (include "tercet.roles-name" (list $top (index . 2))) -}}
{{- $mounts := concat $container.volumeMounts $added.volumeMounts -}}
{{- $_ := set $spec "volumes" (concat $spec.volumes $pair.template.spec.volumes) -}}
{{- $_ := set $spec "containers" (list (set (mergeOverwrite $container $added) "volumeMounts" $mounts)) -}}
{{- $_ := set $spec "affinity" $pair.template.spec.affinity -}}
{{- end -}}

{{/* The autoscaler of a part as one of KEDA, which asks Prometheus itself. (the chart's top, manifest) */}}
{{- define "tercet.scaled" -}}
{{- $top := index . 0 -}}
{{- $found := index . 1 -}}
{{- $target := $found.spec.scaleTargetRef -}}
{{- $triggers := list -}}
{{- range $metric := $found.spec.metrics -}}
{{- $labels := printf `namespace="%s",pod=~"%s-.+"` $top.Release.Namespace $target.name -}}
{{- range $label, $value := ($metric.pods.metric.selector | default dict).matchLabels -}}
{{- $labels = printf `%s,%s="%s"` $labels $label $value -}}
{{- end -}}
{{- $threshold := $metric.pods.target.averageValue -}}
{{- if hasSuffix "m" $threshold -}}{{- $threshold = divf (trimSuffix "m" $threshold) 1000 | toString -}}{{- end -}}
{{- $metadata := dict "serverAddress" $top.Values.keda.prometheus "threshold" $threshold -}}
{{- $_ := set $metadata "query" (printf "sum(%s{%s})" $metric.pods.metric.name $labels) -}}
{{- $triggers = append $triggers (dict "type" "prometheus" "metricType" "AverageValue" "metadata" $metadata) -}}
{{- end -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {{ toYaml $found.metadata | nindent 2 }}
spec:
  scaleTargetRef: {{ toYaml $target | nindent 4 }}
  minReplicaCount: {{ $found.spec.minReplicas }}
  maxReplicaCount: {{ $found.spec.maxReplicas }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {{ toYaml $found.spec.behavior | nindent 8 }}
  triggers: {{ toYaml $triggers | nindent 4 }}
{{- end -}}
