// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// helmValues are the values of the chart that the manifests have as well.
type helmValues struct {
	Image struct {
		Repository string `json:"repository"`
		Tag        string `json:"tag"`
	} `json:"image"`
	ExtraEnvs          []corev1.EnvVar             `json:"extraEnvs"`
	Resources          corev1.ResourceRequirements `json:"resources"`
	PodSecurityContext *corev1.PodSecurityContext  `json:"podSecurityContext"`
	SecurityContext    *corev1.SecurityContext     `json:"securityContext"`
	Tolerations        []corev1.Toleration         `json:"tolerations"`
	NetworkPolicy      struct {
		Enabled          bool                             `json:"enabled"`
		AllowIngressFrom []networkingv1.NetworkPolicyPeer `json:"allowIngressFrom"`
	} `json:"networkPolicy"`
	AlternateConfig map[string]any `json:"alternateConfig"`
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
	require.NoError(t, yaml.Unmarshal(read(t, name), &content))
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
			text := read(t, file)
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
			require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &values))
			assert.True(t, reflect.DeepEqual(values.AlternateConfig, readYAMLText(t, want)), "%s has another configuration than the manifests: cd deploy && go test -run TestHelmValues -update .", file)

			template := manifests(t, name).pods[pod]
			container := collectorOf(t, template)
			assert.Equal(t, container.Image, values.Image.Repository+":"+values.Image.Tag)
			environment := environmentOf(t, corev1.Container{Env: values.ExtraEnvs})
			assert.Equal(t, environmentOf(t, container), environment)
			assert.True(t, values.Resources.Limits.Memory().Equal(*container.Resources.Limits.Memory()), "%v", values.Resources)
			assert.Equal(t, template.Spec.SecurityContext, values.PodSecurityContext)
			assert.Equal(t, container.SecurityContext, values.SecurityContext)
			assert.True(t, values.NetworkPolicy.Enabled)
			assert.Equal(t, all[*networkingv1.NetworkPolicy](manifests(t, name))[0].Spec.Ingress[0].From, values.NetworkPolicy.AllowIngressFrom)
			assert.Equal(t, template.Spec.Tolerations, values.Tolerations)

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
	require.NoError(t, err)
	require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &content))
	return content
}
