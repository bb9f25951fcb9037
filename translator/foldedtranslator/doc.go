// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package foldedtranslator turns folded stacks into OTLP profiles and back.
//
// Folded stacks are text that flamegraph.pl, speedscope and inferno read: one line for each
// stack, its frames from the root, separated by semicolons, then a space and a value.
//
//	main;handle;encode 42
//
// A semicolon or line feed in a frame is written as \x3b or \x0a, and read back.
package foldedtranslator

import "strings"

var (
	escape   = strings.NewReplacer(";", `\x3b`, "\n", `\x0a`, "\r", `\x0d`)
	unescape = strings.NewReplacer(`\x3b`, ";", `\x0a`, "\n", `\x0d`, "\r")
)
