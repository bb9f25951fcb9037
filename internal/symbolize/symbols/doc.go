// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package symbols gives functions, files and lines to addresses of ELF files.
//
// [Build] reads the debug information of a file once and writes a table; [Open] maps the table for look-ups, which
// parse no DWARF. A table has ranges of addresses, each with a line and a node of the tree of inlined calls, and
// the symbols of the file. The frames of an address are those that llvm-symbolizer prints: the innermost inlined
// call first, the function whose code it is last, with the name of its symbol if it has one.
//
// Sources are DWARF 2 to 5, also compressed, in a separate debug file, and shared by dwz, .symtab or else .dynsym, and
// Go's pclntab if there is no DWARF. Names are as in the file, not demangled.
//
// Build copies the sections to temporary files that it maps, takes at most the memory that its caller allows, and a
// number of steps in proportion to the size of the sections, whatever the file says of itself: debug/dwarf allocates what
// a file asks for, so DWARF is read here. Whatever is wrong with a file is an error. An address that does not lie in
// executable sections has no frames.
package symbols
