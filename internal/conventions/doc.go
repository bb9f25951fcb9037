// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package conventions holds tests of the repository as a whole: which package
// may import which, at which versions the collector's modules stand, and the
// license header of each file. There is no code in it.
package conventions
