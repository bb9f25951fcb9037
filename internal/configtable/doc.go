// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package configtable writes the configuration reference of each component into its README: a
// table of keys, types, defaults and descriptions, between the markers that mdatagen uses. Keys,
// types and defaults come from the component's default configuration, descriptions from the doc
// comments of the fields or, for types of other modules, from the map descriptions. Its test checks the tables; with -update (make generate) it writes them.
//
// mdatagen can write such a table as well, but from a schema in metadata.yaml, which repeats
// keys and defaults by hand.
package configtable
