// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package packaging holds the files of the deb and rpm packages, the tools that build a
// release, and tests of what they have built. `make snapshot` runs it all.
//
// The tools are in a module of their own: the Collector's modules and theirs need not agree
// about versions.
package packaging
