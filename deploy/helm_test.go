// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// helmValues are the keys of the chart opentelemetry-collector that the values use, with the
// types of its schema. Objects of Kubernetes have the types of the Kubernetes API.
type helmValues struct {
	Mode  string `json:"mode"`
	Image struct {
		Repository string `json:"repository"`
		Tag        string `json:"tag"`
	} `json:"image"`
	Command struct {
		Name string `json:"name"`
	} `json:"command"`
	ClusterRole struct {
		Create bool                `json:"create"`
		Rules  []rbacv1.PolicyRule `json:"rules"`
	} `json:"clusterRole"`
	ExtraEnvs []corev1.EnvVar `json:"extraEnvs"`
	Ports     map[string]struct {
		Enabled bool `json:"enabled"`
	} `json:"ports"`
	UseGOMEMLIMIT      bool                       `json:"useGOMEMLIMIT"`
	Resources          helmResources              `json:"resources"`
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext"`
	SecurityContext    *corev1.SecurityContext    `json:"securityContext"`
	Tolerations        []corev1.Toleration        `json:"tolerations"`
	ExtraVolumes       []corev1.Volume            `json:"extraVolumes"`
	ExtraVolumeMounts  []corev1.VolumeMount       `json:"extraVolumeMounts"`
	Autoscaling        struct {
		Enabled                        bool `json:"enabled"`
		MinReplicas                    int  `json:"minReplicas"`
		MaxReplicas                    int  `json:"maxReplicas"`
		TargetCPUUtilizationPercentage int  `json:"targetCPUUtilizationPercentage"`
	} `json:"autoscaling"`
	PodDisruptionBudget struct {
		Enabled        bool `json:"enabled"`
		MaxUnavailable int  `json:"maxUnavailable"`
	} `json:"podDisruptionBudget"`
	AlternateConfig map[string]any `json:"alternateConfig"`
}

type helmResources struct {
	Requests corev1.ResourceList `json:"requests"`
	Limits   corev1.ResourceList `json:"limits"`
}

// merge lays a configuration over another as the Collector does: maps are merged, and all else
// is replaced.
func merge(under, over map[string]any) {
	for key, value := range over {
		section, isMap := value.(map[string]any)
		if below, both := under[key].(map[string]any); isMap && both {
			merge(below, section)
			continue
		}
		under[key] = value
	}
}

func readYAML(t *testing.T, name string) (content map[string]any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(text, &content)
	}
	require.NoError(t, err)
	return content
}

// TestHelmValues compares the values for the chart with the manifests: their configuration,
// variables, resources and privileges are the same. The program accepts the configuration.
func TestHelmValues(t *testing.T) {
	for name, pod := range map[string]string{"gateway": "otelcol-profiles-gateway", "agent": "otelcol-profiles-agent"} {
		t.Run(name, func(t *testing.T) {
			want := readYAML(t, filepath.Join("..", "config", name+".yaml"))
			merge(want, readYAML(t, filepath.Join("kubernetes", name, "kubernetes.yaml")))
			file := filepath.Join("helm", name+"-values.yaml")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if *update {
				config, err := yaml.Marshal(map[string]any{"alternateConfig": want})
				require.NoError(t, err)
				written, _, _ := strings.Cut(string(text), "alternateConfig:")
				text = append([]byte(written), config...)
				require.NoError(t, os.WriteFile(file, text, 0o600))
			}
			var values helmValues
			asJSON, err := yaml.YAMLToJSONStrict(text)
			require.NoError(t, err)
			if unknown, err := kjson.UnmarshalStrict(asJSON, &values); err != nil || len(unknown) > 0 {
				t.Fatalf("%s: %v %v", file, err, unknown)
			}
			assert.True(t, reflect.DeepEqual(values.AlternateConfig, readYAMLText(t, want)), "%s has another configuration than the manifests: cd deploy && go test -run TestHelmValues -update .", file)

			template := manifests(t, name).pods[pod]
			container := collectorOf(t, template)
			assert.Equal(t, map[string]string{"gateway": "deployment", "agent": "daemonset"}[name], values.Mode, "the mode")
			if image := values.Image.Repository + ":" + values.Image.Tag; image != container.Image || values.Command.Name != "usr/bin/otelcol-profiles" {
				t.Errorf("it runs %s of %s, want %s", values.Command.Name, image, container.Image)
			}
			environment := environmentOf(t, corev1.Container{Env: values.ExtraEnvs})
			assert.True(t, maps.Equal(environment, environmentOf(t, container)), "the variables are %v", environment)
			if values.UseGOMEMLIMIT || !values.Resources.Limits.Memory().Equal(*container.Resources.Limits.Memory()) ||
				!values.Resources.Requests.Cpu().Equal(*container.Resources.Requests.Cpu()) {
				t.Errorf("the resources are %+v, want %+v", values.Resources, container.Resources)
			}
			if !reflect.DeepEqual(values.PodSecurityContext, template.Spec.SecurityContext) || !reflect.DeepEqual(values.SecurityContext, container.SecurityContext) {
				t.Errorf("it has other privileges: %+v %+v", values.PodSecurityContext, values.SecurityContext)
			}
			assert.True(t, reflect.DeepEqual(values.Tolerations, template.Spec.Tolerations), "it tolerates %v, want %v", values.Tolerations, template.Spec.Tolerations)
			if len(values.ExtraVolumes) != 1 || len(values.ExtraVolumeMounts) != 1 || values.ExtraVolumes[0].EmptyDir == nil ||
				values.ExtraVolumeMounts[0].MountPath != "/var/lib/otelcol-profiles" || values.ExtraVolumes[0].Name != values.ExtraVolumeMounts[0].Name {
				t.Errorf("nothing to write at: %v %v", values.ExtraVolumes, values.ExtraVolumeMounts)
			}
			var enabled []string
			for port, set := range values.Ports {
				if set.Enabled {
					enabled = append(enabled, port)
				}
			}
			if !slices.Equal(enabled, []string{"metrics"}) { // and of a gateway those of OTLP, by default
				t.Errorf("the ports are %v", enabled)
			}

			config, err := yaml.Marshal(values.AlternateConfig)
			require.NoError(t, err)
			relay := filepath.Join(t.TempDir(), "relay.yaml")
			require.NoError(t, os.WriteFile(relay, config, 0o600))
			environment["DATA_DIR"] = t.TempDir()
			run(t, programOf(t, container.Image), environment, "validate", "--config="+relay)
		})
	}
}

// readYAMLText gives a value the types that it has when it is read from text.
func readYAMLText(t *testing.T, value map[string]any) (content map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(value)
	require.NoError(t, err)
	asJSON, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &content)
	}
	require.NoError(t, err)
	return content
}
