// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"flag"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "copy config/*.yaml to where Kubernetes needs them")

// kinds are the allowed kinds of objects.
var kinds = map[string]func() metav1.Object{
	"v1 Namespace":                                    func() metav1.Object { return &corev1.Namespace{} },
	"v1 ConfigMap":                                    func() metav1.Object { return &corev1.ConfigMap{} },
	"v1 Service":                                      func() metav1.Object { return &corev1.Service{} },
	"v1 ServiceAccount":                               func() metav1.Object { return &corev1.ServiceAccount{} },
	"apps/v1 Deployment":                              func() metav1.Object { return &appsv1.Deployment{} },
	"apps/v1 DaemonSet":                               func() metav1.Object { return &appsv1.DaemonSet{} },
	"autoscaling/v2 HorizontalPodAutoscaler":          func() metav1.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
	"networking.k8s.io/v1 NetworkPolicy":              func() metav1.Object { return &networkingv1.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":                   func() metav1.Object { return &policyv1.PodDisruptionBudget{} },
	"rbac.authorization.k8s.io/v1 ClusterRole":        func() metav1.Object { return &rbacv1.ClusterRole{} },
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding": func() metav1.Object { return &rbacv1.ClusterRoleBinding{} },
}

// cluster holds the objects that kubectl apply -k creates from a directory.
type cluster struct {
	objects []metav1.Object
	pods    map[string]*corev1.PodTemplateSpec // by the name of what makes them
}

// manifests builds a directory as kubectl apply -k does, and decodes the objects into the
// types of the Kubernetes API. An unknown field is an error.
func manifests(t *testing.T, dir string) *cluster {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("kubernetes", dir))
	require.NoError(t, err)
	c := &cluster{pods: map[string]*corev1.PodTemplateSpec{}}
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		var kind metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal(text, &kind))
		newObject := kinds[kind.APIVersion+" "+kind.Kind]
		require.NotNil(t, newObject, "%s: unknown %s of %s", dir, kind.Kind, kind.APIVersion)
		object := newObject()
		asJSON, err := yaml.YAMLToJSONStrict(text)
		require.NoError(t, err)
		// As an API server with strict validation: letters in the other case are wrong.
		if unknown, err := kjson.UnmarshalStrict(asJSON, object); err != nil || len(unknown) > 0 {
			t.Fatalf("%s: %s: %v %v\n%s", dir, kind.Kind, err, unknown, text)
		}
		c.objects = append(c.objects, object)
		switch object := object.(type) {
		case *appsv1.Deployment:
			c.pods[object.Name] = &object.Spec.Template
		case *appsv1.DaemonSet:
			c.pods[object.Name] = &object.Spec.Template
		}
	}
	return c
}

func all[T metav1.Object](c *cluster) (found []T) {
	for _, object := range c.objects {
		if object, ok := object.(T); ok {
			found = append(found, object)
		}
	}
	return found
}

// named returns the object of a type with that name, or fails.
func named[T metav1.Object](t *testing.T, c *cluster, name string) (zero T) {
	t.Helper()
	for _, object := range all[T](c) {
		if object.GetName() == name {
			return object
		}
	}
	t.Fatalf("no %T is named %s", zero, name)
	return zero
}

var directories = []string{"gateway", "agent", "example"}

// TestKubernetesConfigs checks that the copies of config/*.yaml are up to date. Kustomize
// cannot read files outside of its directory.
func TestKubernetesConfigs(t *testing.T) {
	for name, of := range map[string]string{"gateway": "gateway.yaml", "agent": "agent.yaml", "sidecar": "sidecar.yaml", "ebpf": "ebpf/ebpf.yaml"} {
		original := read(t, "..", "config", filepath.FromSlash(of))
		copied := filepath.Join("kubernetes", name, name+".yaml")
		if *update {
			require.NoError(t, os.WriteFile(copied, original, 0o600))
		}
		assert.True(t, bytes.Equal(read(t, copied), original), "deploy/%s differs from config/%s: cd deploy && go test -run TestKubernetesConfigs -update .", filepath.ToSlash(copied), of)
	}
}

// TestKubernetesReferences checks that every referenced object exists.
func TestKubernetesReferences(t *testing.T) {
	for _, dir := range append(slices.Clone(directories), "ebpf") {
		t.Run(dir, func(t *testing.T) {
			c := manifests(t, dir)
			require.Len(t, c.pods, 1, "kinds of pods")
			for _, d := range all[*appsv1.Deployment](c) {
				checkSelector(t, c, d.Name, d.Spec.Selector)
			}
			for _, d := range all[*appsv1.DaemonSet](c) {
				checkSelector(t, c, d.Name, d.Spec.Selector)
			}
			for _, budget := range all[*policyv1.PodDisruptionBudget](c) {
				checkSelector(t, c, budget.Name, budget.Spec.Selector)
			}
			for _, service := range all[*corev1.Service](c) {
				pod := checkSelector(t, c, service.Name, &metav1.LabelSelector{MatchLabels: service.Spec.Selector})
				for _, port := range service.Spec.Ports {
					assert.NotZero(t, portNumber(pod.Spec.Containers[0], port.TargetPort), "service %s: the pods have no port %s", service.Name, port.TargetPort.String())
				}
			}
			if dir != "example" {
				checkPolicies(t, c)
			}
			for _, scaler := range all[*autoscalingv2.HorizontalPodAutoscaler](c) {
				target := named[*appsv1.Deployment](t, c, scaler.Spec.ScaleTargetRef.Name)
				assert.Nil(t, target.Spec.Replicas, "%s sets replicas, which %s does as well", target.Name, scaler.Name)
				assert.Less(t, *scaler.Spec.MinReplicas, scaler.Spec.MaxReplicas, "%s: replicas", scaler.Name)
			}
			for _, binding := range all[*rbacv1.ClusterRoleBinding](c) {
				named[*rbacv1.ClusterRole](t, c, binding.RoleRef.Name)
				for _, subject := range binding.Subjects {
					account := named[*corev1.ServiceAccount](t, c, subject.Name)
					assert.Equal(t, account.Namespace, subject.Namespace, "%s binds %s", binding.Name, subject.Name)
				}
			}
			for name, pod := range c.pods {
				checkVolumes(t, c, name, pod)
				if account := pod.Spec.ServiceAccountName; account != "" {
					named[*corev1.ServiceAccount](t, c, account)
				} else if mount := pod.Spec.AutomountServiceAccountToken; mount == nil || *mount {
					t.Errorf("%s has a token that it does not need", name)
				}
			}
		})
	}
}

// checkPolicies: only pods of the cluster reach the ports of the Collector, all of them but that of probes, which come from the node.
func checkPolicies(t *testing.T, c *cluster) {
	t.Helper()
	policies := all[*networkingv1.NetworkPolicy](c)
	require.Len(t, policies, 1)
	policy := policies[0]
	pod := checkSelector(t, c, policy.Name, &policy.Spec.PodSelector)
	require.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes)
	require.Len(t, policy.Spec.Ingress, 1)
	rule := policy.Spec.Ingress[0]
	assert.Equal(t, []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}, rule.From)
	var open, served []string
	for _, port := range rule.Ports {
		open = append(open, port.Port.StrVal)
	}
	for _, port := range pod.Spec.Containers[0].Ports {
		if port.Name != "health" {
			served = append(served, port.Name)
		}
	}
	assert.ElementsMatch(t, served, open, policy.Name)
}

// checkSelector returns the pods that a selector selects; there must be some.
func checkSelector(t *testing.T, c *cluster, name string, selector *metav1.LabelSelector) *corev1.PodTemplateSpec {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err, name)
	require.False(t, s.Empty(), "%s: the selector %v selects everything", name, selector)
	for _, pod := range c.pods {
		if s.Matches(labels.Set(pod.Labels)) {
			return pod
		}
	}
	t.Fatalf("%s: no pod has labels for %s", name, s)
	return nil
}

func containers(pod *corev1.PodTemplateSpec) []corev1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

func checkVolumes(t *testing.T, c *cluster, name string, pod *corev1.PodTemplateSpec) {
	t.Helper()
	volumes := map[string]bool{} // whether it is mounted
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = false
		if volume.ConfigMap != nil {
			named[*corev1.ConfigMap](t, c, volume.ConfigMap.Name)
		}
	}
	for _, container := range containers(pod) {
		for _, mount := range container.VolumeMounts {
			assert.Contains(t, volumes, mount.Name, "%s: container %s mounts an unknown volume", name, container.Name)
			volumes[mount.Name] = true
		}
	}
	for volume, mounted := range volumes {
		assert.True(t, mounted, "%s: volume %s is not mounted", name, volume)
	}
}

// portNumber is the number of a port of a container, or 0.
func portNumber(container corev1.Container, port intstr.IntOrString) int32 {
	for _, p := range container.Ports {
		if p.Name == port.StrVal && port.Type == intstr.String || p.ContainerPort == port.IntVal && port.Type == intstr.Int {
			return p.ContainerPort
		}
	}
	return 0
}

// collectorOf returns the container that is ours.
func collectorOf(t *testing.T, pod *corev1.PodTemplateSpec) corev1.Container {
	t.Helper()
	for _, container := range containers(pod) {
		if container.Name == "otelcol-profiles" {
			return container
		}
	}
	t.Fatal("there is no container otelcol-profiles")
	return corev1.Container{}
}

// TestKubernetesPodsAreRestricted checks the pod security standard "restricted", that the root file system is read-only, that memory
// has a limit, and that no variable overrides the shares of it in the configurations.
func TestKubernetesPodsAreRestricted(t *testing.T) {
	isTrue := func(values ...*bool) bool { // the first that is set
		for _, v := range values {
			if v != nil {
				return *v
			}
		}
		return false
	}
	for _, dir := range directories {
		for name, pod := range manifests(t, dir).pods {
			outer := pod.Spec.SecurityContext
			if outer == nil {
				outer = &corev1.PodSecurityContext{}
			}
			for _, container := range containers(pod) {
				inner := container.SecurityContext
				require.NotNil(t, inner, "%s: %s has no securityContext", name, container.Name)
				seccomp := inner.SeccompProfile
				if seccomp == nil {
					seccomp = outer.SeccompProfile
				}
				for what, ok := range map[string]bool{
					"runs as root":               isTrue(inner.RunAsNonRoot, outer.RunAsNonRoot),
					"writes its root":            isTrue(inner.ReadOnlyRootFilesystem),
					"may gain privileges":        inner.AllowPrivilegeEscalation != nil && !*inner.AllowPrivilegeEscalation,
					"is privileged":              !isTrue(inner.Privileged),
					"has capabilities":           inner.Capabilities != nil && slices.Equal(inner.Capabilities.Drop, []corev1.Capability{"ALL"}) && len(inner.Capabilities.Add) == 0,
					"makes any system call":      seccomp != nil && seccomp.Type == corev1.SeccompProfileTypeRuntimeDefault,
					"is of no certain version":   strings.Contains(path.Base(container.Image), ":") && !strings.HasSuffix(container.Image, ":latest"),
					"does not ask for processor": !container.Resources.Requests.Cpu().IsZero(),
					"does not ask for memory":    !container.Resources.Requests.Memory().IsZero(),
				} {
					assert.True(t, ok, "%s: container %s %s", name, container.Name, what)
				}
			}
			for _, volume := range pod.Spec.Volumes {
				assert.False(t, volume.ConfigMap == nil && volume.EmptyDir == nil, "%s: the volume %s is neither a ConfigMap nor an emptyDir", name, volume.Name)
			}
			collector := collectorOf(t, pod)
			limit, requested := collector.Resources.Limits.Memory(), collector.Resources.Requests.Memory()
			assert.False(t, limit.IsZero() || limit.Cmp(*requested) != 0, "%s: limit of memory %s, and %s requested", name, limit, requested)
			assert.NotContains(t, environmentOf(t, collector), "GOMEMLIMIT", "%s: the program takes 80 %% of the container", name)
			assert.False(t, pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC, "%s has a part of the host", name)
		}
	}
}

// environmentOf returns the environment of a container. Variables that take a field of the pod
// get their own name in lower case.
func environmentOf(t *testing.T, container corev1.Container) map[string]string {
	t.Helper()
	environment := map[string]string{}
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			require.NotNil(t, from.FieldRef, "%s: where from?", variable.Name)
			value = strings.ToLower(variable.Name)
		}
		environment[variable.Name] = value
	}
	return environment
}

// TestKubernetesConfigsAreValid resolves the configuration of each container with the built
// program, and compares ports, probes and shutdown times with the manifest.
func TestKubernetesConfigsAreValid(t *testing.T) {
	for _, dir := range directories {
		t.Run(dir, func(t *testing.T) {
			c := manifests(t, dir)
			for _, pod := range c.pods {
				container := collectorOf(t, pod)
				bin := programOf(t, container.Image)
				environment, args := commandOf(t, c, pod, container)
				run(t, bin, environment, append([]string{"validate"}, args...)...)
				var config collectorConfig
				require.NoError(t, yaml.Unmarshal([]byte(run(t, bin, environment, append([]string{"print-config"}, args...)...)), &config))

				health := config.Extensions["health_check"].Endpoint
				for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe} {
					port := portNumber(container, probe.HTTPGet.Port)
					assert.Equal(t, net.JoinHostPort("0.0.0.0", strconv.Itoa(int(port))), health, "the probe asks another address")
					assert.Equal(t, "/", probe.HTTPGet.Path)
				}
				listens := config.listens()
				assert.GreaterOrEqual(t, len(listens), map[string]int{"gateway": 3, "agent": 2, "example": 3}[dir], "health, metrics, and something of its own")
				for _, endpoint := range listens {
					host, port, err := net.SplitHostPort(endpoint)
					require.NoError(t, err)
					number, err := strconv.ParseInt(port, 10, 32)
					require.NoError(t, err)
					open := portNumber(container, intstr.FromInt32(int32(number))) != 0
					assert.True(t, open || host != "0.0.0.0", "the collector listens at %s, which is no port of the container", endpoint)
				}
				// Otherwise metrics have other names than those in the alerts.
				for _, reader := range config.Service.Telemetry.Metrics.Readers {
					p := reader.Pull.Exporter.Prometheus
					assert.True(t, p.WithoutScopeInfo && p.WithoutTypeSuffix && p.WithoutUnits, "metrics are named as in %+v", p)
				}
				if annotated, port := pod.Annotations["prometheus.io/port"], portNumber(container, intstr.FromString("metrics")); dir != "example" && annotated != strconv.Itoa(int(port)) {
					t.Errorf("Prometheus is sent to port %q, metrics are at %d", annotated, port)
				}
				var atEnd time.Duration
				for name, processor := range config.Processors {
					if kind, _, _ := strings.Cut(name, "/"); kind == "profiles_dedup" {
						d, err := time.ParseDuration(processor.ShutdownTimeout)
						require.NoError(t, err)
						atEnd += d
					}
				}
				assert.NotZero(t, atEnd)
				assert.GreaterOrEqual(t, time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second, atEnd+20*time.Second, "its last windows may take %s", atEnd)
			}
		})
	}
}

// commandOf returns the environment and the arguments of a container, with its ConfigMaps in files of this machine.
func commandOf(t *testing.T, c *cluster, pod *corev1.PodTemplateSpec, container corev1.Container) (environment map[string]string, args []string) {
	t.Helper()
	mounted := map[string]string{} // files by their path in the container
	for _, m := range container.VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != m.Name || volume.ConfigMap == nil {
				continue
			}
			dir := t.TempDir()
			for key, text := range named[*corev1.ConfigMap](t, c, volume.ConfigMap.Name).Data {
				file := filepath.Join(dir, key)
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
				mounted[path.Join(m.MountPath, key)] = file
			}
		}
	}
	for _, arg := range container.Args {
		if file, ok := strings.CutPrefix(arg, "--config="); ok {
			require.Contains(t, mounted, file, "file of the ConfigMap")
			arg = "--config=" + mounted[file]
		}
		args = append(args, arg)
	}
	environment = environmentOf(t, container)
	environment["DATA_DIR"] = t.TempDir()
	return environment, args
}

// collectorConfig holds the tested keys of the output of print-config.
type collectorConfig struct {
	Extensions map[string]struct{ Endpoint string }
	Receivers  map[string]struct {
		Server    *struct{ Endpoint string }
		Protocols map[string]struct {
			Endpoint string
			NetAddr  struct{ Endpoint string }
		}
	}
	Processors map[string]struct {
		ShutdownTimeout string `json:"shutdown_timeout"`
	}
	Service struct {
		Telemetry struct {
			Metrics struct {
				Readers []struct {
					Pull struct {
						Exporter struct {
							Prometheus struct {
								Host              string
								Port              int
								WithoutScopeInfo  bool `json:"without_scope_info"`
								WithoutTypeSuffix bool `json:"without_type_suffix"`
								WithoutUnits      bool `json:"without_units"`
							}
						}
					}
				}
			}
		}
	}
}

// listens returns the addresses that the collector listens at.
func (c collectorConfig) listens() (endpoints []string) {
	for _, extension := range c.Extensions {
		if extension.Endpoint != "" {
			endpoints = append(endpoints, extension.Endpoint)
		}
	}
	for _, receiver := range c.Receivers {
		if receiver.Server != nil {
			endpoints = append(endpoints, receiver.Server.Endpoint)
		}
		for _, protocol := range receiver.Protocols {
			endpoints = append(endpoints, protocol.Endpoint+protocol.NetAddr.Endpoint)
		}
	}
	for _, reader := range c.Service.Telemetry.Metrics.Readers {
		endpoint := reader.Pull.Exporter.Prometheus
		endpoints = append(endpoints, net.JoinHostPort(endpoint.Host, strconv.Itoa(endpoint.Port)))
	}
	return endpoints
}
