// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sampletypes

import (
	"cmp"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

const (
	maxSymbol     = 1 << 10 // bytes; the time grows with the square of the length
	maxNamePower  = 12
	maxDemangled  = 1 << maxNamePower // bytes: a symbol of 400 bytes can stand for a name of a gigabyte
	symbolOfMacOS = "__"              // starts them, as all symbols have one underscore more there
)

var demangling = []demangle.Option{demangle.NoParams, demangle.NoEnclosingParams, demangle.NoTemplateParams, demangle.MaxLength(maxNamePower)}

// FunctionName is the name by which a function is shown, as go tool pprof shows it: that which its profiler made of the symbol
// of the program, which is the system name, or else the symbol itself, without parameters and template arguments if it is one
// of C++ or Rust. A longer symbol than maxSymbol, or one that stands for a longer name than maxDemangled, stays as it is.
// The result is empty if both are.
func FunctionName(name, systemName string) string {
	symbol := cmp.Or(systemName, name)
	if name != "" && name != symbol || !strings.HasPrefix(symbol, "_") || len(symbol) > maxSymbol {
		return cmp.Or(name, symbol)
	}
	if shown := demangle.Filter(symbol, demangling...); shown != symbol && len(shown) < maxDemangled {
		return shown
	}
	if strings.HasPrefix(symbol, symbolOfMacOS) {
		if shown := demangle.Filter(symbol[1:], demangling...); shown != symbol[1:] && len(shown) < maxDemangled {
			return shown
		}
	}
	return symbol
}
