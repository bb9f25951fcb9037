// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package configtable writes two references that the code has: the table of configuration keys in the README of each
// component, between the markers that mdatagen uses, and docs/metrics.md.
//
// Keys, types and defaults come from the component's default configuration, descriptions from the doc comments of the
// fields. A section of another module is one row, with a link and the defaults that differ. Metrics come from
// metadata.yaml. Its tests check both; with -update (make generate) they write them.
//
// mdatagen can write such tables as well: of keys from a schema in metadata.yaml, which repeats keys and defaults by hand,
// and of metrics with the descriptions of all labels for each metric.
package configtable
