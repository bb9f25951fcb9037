// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// ebpfPod returns the pod of the eBPF profiler.
func ebpfPod(t *testing.T) (*cluster, *corev1.PodTemplateSpec) {
	t.Helper()
	c := manifests(t, "ebpf")
	pod := c.pods["otelcol-profiles-ebpf"]
	require.NotNil(t, pod, "there is no DaemonSet")
	return c, pod
}

func TestEBPFPodIsRestrictedOtherwise(t *testing.T) {
	_, pod := ebpfPod(t)
	container := collectorOf(t, pod)
	security := container.SecurityContext
	assert.False(t, *security.Privileged || *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem, "the container may do everything: %+v", security)
	assert.Equal(t, []corev1.Capability{"ALL"}, security.Capabilities.Drop)
	assert.NotEmpty(t, security.Capabilities.Add)
	for _, volume := range pod.Spec.Volumes {
		for _, mount := range container.VolumeMounts {
			assert.False(t, volume.HostPath != nil && mount.Name == volume.Name && !mount.ReadOnly, "it may write %s of the node", volume.Name)
		}
	}
	assert.True(t, pod.Spec.HostPID && !pod.Spec.HostNetwork && !pod.Spec.HostIPC, "other parts of the node: %+v", pod.Spec)
	assert.Len(t, containers(pod), 1)
	assert.False(t, container.Resources.Limits.Memory().IsZero(), "its memory has no limit")
}

// TestEBPFConfigIsValid needs the program of make build-ebpf.
func TestEBPFConfigIsValid(t *testing.T) {
	bin := os.Getenv("OTELCOL_PROFILES_EBPF_BIN")
	if bin == "" {
		t.Skip("OTELCOL_PROFILES_EBPF_BIN names no program (make test-ebpf)")
	}
	c, pod := ebpfPod(t)
	environment, args := commandOf(t, c, pod, collectorOf(t, pod))
	run(t, bin, environment, append([]string{"validate"}, args...)...)
}
