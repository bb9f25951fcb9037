// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package foldedtranslator turns folded stacks into OTLP profiles and back.
//
// Folded stacks are text that flamegraph.pl, speedscope and inferno read: one line for each
// stack, its frames from the root, separated by semicolons, then a space and a value.
//
//	main;handle;encode 42
//
// A semicolon or line feed in a frame is written as \x3b or \x0a, and read back. So are a number sign, with which the line
// would be a comment, and white space at the end of a stack, or before a number there if all stacks end in one.
//
// Values with decimals become whole numbers. What one is rounded up or down by is added to the next, so that the values of
// any lines that follow each other have the right sum, to one unit. If there is a Period, values are multiplied first.
// Lines such as "# mode: wall" are comments if the text starts with one. A byte order mark of UTF-8 does not count.
package foldedtranslator

import "strings"

var (
	escape   = strings.NewReplacer(";", `\x3b`, "\n", `\x0a`, "\r", `\x0d`)
	unescape = strings.NewReplacer(`\x3b`, ";", `\x0a`, "\n", `\x0d`, "\r", `\x09`, "\t", `\x20`, " ", `\x23`, "#")
)
