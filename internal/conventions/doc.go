// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package conventions tests the repository as a whole: which package may import which, the
// versions of the collector's modules, license headers, what components export, links
// between pages, and that each row of docs/reliability.md has a test. It holds tests only.
package conventions
