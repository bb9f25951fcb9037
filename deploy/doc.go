// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package deploy holds no code but tests: of the manifests, the Dockerfile, the unit of
// systemd, the dashboard and the alerts in this directory. It is a module of its own
// since they are read with the libraries of those that read them in the field.
package deploy
