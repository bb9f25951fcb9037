// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// kubernetesExample returns the configuration in the receiver's README that scrapes pods.
func kubernetesExample(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join("..", "receiver", "pprofreceiver", "README.md"))
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)<!-- kubernetes.*?```yaml\n(.*?)```").FindSubmatch(readme)
	require.NotNil(t, block, "the README has no configuration for Kubernetes")
	return string(block[1])
}

// cluster is a Kubernetes API with one pod, which has a port named pprof and another one, until
// it is deleted.
type cluster struct {
	pod     string
	deleted chan struct{}
}

// containerID is the ID of the pod's container.
const containerID = "5d1f0c"

func newCluster(port string) *cluster {
	return &cluster{deleted: make(chan struct{}), pod: `{"apiVersion": "v1", "kind": "Pod",
		"metadata": {
			"name": "checkout-1", "namespace": "shop", "uid": "uid-1", "resourceVersion": "1", "labels": {"app.kubernetes.io/name": "checkout"}
		},
		"spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "checkout:1", "ports": [
			{"name": "http", "containerPort": 1, "protocol": "TCP"}, {"name": "pprof", "containerPort": ` + port + `, "protocol": "TCP"}
		]}]},
		"status": {"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": [
			{"name": "main", "containerID": "containerd://` + containerID + `", "state": {"running": {}}}
		]}
	}`}
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if r.URL.Path != "/api/v1/pods" || query.Get("fieldSelector") != "spec.nodeName=node-1" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	send := func(text string) {
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "POD", c.pod)+"\n") // an error means that the client has gone
		_ = http.NewResponseController(w).Flush()
	}
	if query.Get("watch") == "" {
		send(`{"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [POD]}`)
		return
	}
	if query.Get("sendInitialEvents") == "true" {
		send(`{"type": "ADDED", "object": POD}`)
		send(`{"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": "Pod", "metadata":
			{"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}}}`)
	}
	select {
	case <-c.deleted:
		send(`{"type": "DELETED", "object": POD}`)
		<-r.Context().Done()
	case <-r.Context().Done():
	}
}

// writeKubeconfig writes a configuration of clients for the API at a URL.
func writeKubeconfig(name, url string) error {
	return os.WriteFile(name, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}]}`, url), 0o600)
}

// TestKubernetes runs the example of the README against a Kubernetes API. The pod is scraped until
// it is deleted.
func TestKubernetes(t *testing.T) {
	parallel(t)
	path := nodeProgram(t)
	var scrapes atomic.Int64
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/pprof/goroutine" {
			http.NotFound(w, r)
			return
		}
		scrapes.Add(1)
		_, _ = w.Write(profiletest.Gzip(t, profiletest.Pprof(t, &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "goroutine", Unit: "count"}},
			Sample:     []*profile.Sample{{Value: []int64{1}}},
		})))
	}))
	defer pod.Close()
	_, port, err := net.SplitHostPort(pod.Listener.Addr().String())
	require.NoError(t, err)
	kubernetes := newCluster(port)
	api := httptest.NewServer(kubernetes)
	defer api.Close()
	defer api.CloseClientConnections()

	dir := t.TempDir()
	files := filepath.Join(dir, "profiles")
	text := strings.NewReplacer(
		"/var/lib/profiles", files,
		"serviceAccount", "kubeConfig",
		"profiles: [cpu, heap, goroutine, mutex, block]", "profiles: [goroutine]\n            collection_interval: 100ms",
		"service:\n", "service:\n  telemetry: {metrics: {level: none}}\n",
	).Replace(kubernetesExample(t))
	config, kubeconfig := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "kubeconfig")
	err = errors.Join(
		os.WriteFile(config, []byte(text), 0o600),
		writeKubeconfig(kubeconfig, api.URL),
	)
	require.NoError(t, err)
	c := launch(t, path, []string{"K8S_NODE_NAME=node-1", "KUBECONFIG=" + kubeconfig}, "--config", config)
	c.files = files
	c.await(t, "scrapes of the pod", func() bool { return scrapes.Load() > 3 })

	close(kubernetes.deleted)
	last, quiet := int64(0), 0
	c.await(t, "end of the scrapes", func() bool { // five intervals without one
		if now := scrapes.Load(); now != last {
			last, quiet = now, 0
		}
		quiet++
		return quiet > 50
	})
	c.stop(t)

	profiles := 0
	for _, e := range readProfiles(t, c.files) {
		profiles++
		for key, want := range map[string]string{
			"service.name": "checkout", "service.instance.id": "uid-1",
			"k8s.pod.name": "checkout-1", "k8s.pod.uid": "uid-1", "k8s.namespace.name": "shop",
		} {
			assert.Equal(t, want, resourceAttribute(e, key), "%s", key)
		}
	}
	assert.GreaterOrEqual(t, profiles, 3, "profiles in the files")
}

func resourceAttribute(e expand.Profile, key string) string {
	return expand.Text(e.Resource.Attributes, key)
}
