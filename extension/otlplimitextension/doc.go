// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package otlplimitextension is a Collector extension for the middlewares of the otlp receiver. It rejects
// messages of profiles that would take too much memory, or whose attribute values nest too deep, before the
// receiver decodes them.
//
// It reads each message once, as its bytes arrive, and keeps none. Messages of other signals pass unchecked.
package otlplimitextension
