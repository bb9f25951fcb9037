// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func nodeProgram(t *testing.T) string {
	t.Helper()
	return builtProgram(t, "OTELCOL_PROFILES_NODE_BIN", "otelcol-profiles-node", "make build-node")
}

// TestNode runs config/node beside a Kubernetes API: it drops profiles by service, renames an
// attribute, and adds the metadata of the pod, which it finds by the container ID or by the
// address of the client.
func TestNode(t *testing.T) {
	parallel(t)
	path := nodeProgram(t)
	kubernetes := newCluster("1")
	api := httptest.NewServer(kubernetes)
	defer api.Close()
	defer api.CloseClientConnections()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	require.NoError(t, writeKubeconfig(kubeconfig, api.URL))
	node := runConfig(t, path, "node/node.yaml", env{
		"DATA_DIR": dir, "PPROF_LISTEN": freeAddress(t), "OTLP_GRPC_LISTEN": freeAddress(t),
		"K8S_AUTH_TYPE": "kubeConfig", "KUBECONFIG": kubeconfig, "K8S_NODE_NAME": "node-1",
		"EXPORTER": "profiles_file", "WINDOW": "200ms",
	}, "--set=exporters.profiles_file.rotation.max_age=200ms")
	for query, value := range map[string]int64{
		"service.name=checkout&deployment.environment=production":      1, // by the address
		"service.name=cart&container.id=" + containerID:                2,
		"service.name=batch-nightly&deployment.environment=production": 4,
		"service.name=other&container.id=unknown-anywhere":             8,
	} {
		attributes, err := url.ParseQuery(query)
		require.NoError(t, err)
		node.pushWith(t, attributes, numbered(t, value))
	}
	want := map[string]int64{"checkout cpu": 1, "cart cpu": 2, "other cpu": 8}
	node.awaitSums(t, want)
	node.stop(t)
	node.requireSums(t, want)
	for _, e := range node.written(t) {
		service := resourceAttribute(e, "service.name")
		attributes := map[string]string{
			"deployment.environment": "", "deployment.environment.name": "",
			"k8s.pod.name": "checkout-1", "k8s.namespace.name": "shop", "k8s.pod.uid": "uid-1", "k8s.container.name": "main",
		}
		switch service {
		case "checkout":
			attributes["deployment.environment.name"] = "production"
		case "other": // of no known container
			attributes = map[string]string{"k8s.pod.name": "", "k8s.container.name": ""}
		}
		for key, want := range attributes {
			assert.Equal(t, want, resourceAttribute(e, key), "%s of %s", key, service)
		}
	}
}
