// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package deploy tests the manifests, the Dockerfile, the systemd unit, the dashboard and the
// alerts in this directory. It is a separate module because the tests use the libraries of
// Kubernetes, Docker and Prometheus.
package deploy
