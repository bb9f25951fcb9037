// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package filestorageextension is the file_storage extension of the Collector's contrib
// distribution, with the same configuration and files. It adds two promises: a damaged file
// does not keep the Collector from starting, and a queue loses nothing when its bookkeeping
// cannot be written.
package filestorageextension
