// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
)

// errLegacy is for profiles in the formats from before protobuf.
var errLegacy = errors.New("looks like a profile in a format from before protobuf, such as gperftools'; convert it with `otelprof convert --format pprof` or `go tool pprof -proto`")

// errDebugText is for profiles that net/http/pprof serves as text, which is in such a format.
var errDebugText = errors.New("looks like text, as net/http/pprof serves it with ?debug=1; want the same without debug, or convert this with `otelprof convert --format pprof` or `go tool pprof -proto`")

var errOTLP = errors.New("looks like OTLP; want a pprof profile; the Collector's `otlp` receiver accepts OTLP profiles")

// lookalikes are the data that people send instead of a pprof message, by how they start. They are in
// order: the first match counts.
type lookalikes []struct {
	start *regexp.Regexp
	err   error
}

// foreign are formats that nothing here reads.
var foreign = lookalikes{
	{regexp.MustCompile(`^go 1\.\d+ trace\x00`), errors.New("looks like an execution trace of Go, as /debug/pprof/trace serves it; want a profile, such as that of /debug/pprof/profile")},
	{regexp.MustCompile(`^goroutine \d+ `), errors.New("looks like a list of goroutines, as net/http/pprof serves it with ?debug=2; want the same without debug")},
	{regexp.MustCompile(`^heap_v2/`), errors.New("looks like a heap profile of jemalloc, in a format from before protobuf that pprof does not read; make folded stacks of it with `jeprof --collapsed PROGRAM FILE`")},
	{regexp.MustCompile(`^(# ========\n# captured on|\s*\S[^\n;]*\s-?\d+(/-?\d+)?\s+(\[\d+\]\s+)?\d+\.\d{6,9}:\s)`), errors.New("looks like the output of perf script; make folded stacks of it with `inferno-collapse-perf` or `stackcollapse-perf.pl`")},
	{regexp.MustCompile(`^PERFILE2`), errors.New("looks like the data of perf record; make folded stacks of it with `perf script | inferno-collapse-perf`")},
	{regexp.MustCompile(`^\s*\{[^\x00]*"\$schema"\s*:\s*"https://www\.speedscope\.app/`), errors.New("looks like a file of speedscope; have the profiler write pprof or folded stacks in its place, such as `py-spy record --format raw` or `rbspy record --format collapsed`")},
	{regexp.MustCompile(`(?i)^\s*<(!doctype|html|head|body|\?xml)`), errors.New("looks like a page in HTML; want a pprof profile, such as that of /debug/pprof/heap")},
	{regexp.MustCompile(`(?i)^--.+\r?\ncontent-`), errors.New("looks like a form, as `curl -F` sends it; want the profile itself, as `curl --data-binary @FILE` sends it")},
}

// related are formats that another input reads, or another program.
var related = lookalikes{
	{regexp.MustCompile(`^(heap profile: .*@ heap/|[\w/.-]+ profile: total |--- (mutex|contention):)`), errDebugText},
	{regexp.MustCompile(`^(heap profile:|heapz_v2/|growthz|fragmentationz|--- \w+ |%warn)`), errLegacy},
	// CPU, also of Java: words of 32 bits in both orders of bytes, or of 64 bits.
	{regexp.MustCompile(`^\x00{4}(\x03\x00{3}[\x00\x01]\x00{3}|\x00{3}\x03\x00{3}[\x00\x01]|\x00{4}(\x03\x00{7}|\x00{7}\x03))`), errLegacy},
	{regexp.MustCompile(`^\s*\{\s*"(resource[A-Z][a-z]+|dictionary)"`), errOTLP},
	{regexp.MustCompile(`^[\w.$/:<>()\[\] -]+;[^\x00-\x1f]* \d+(\.\d*)?\r?(\n|$)`), errors.New("looks like folded stacks; push them to /ingest with format=folded, or convert them with `otelprof convert --format pprof`")},
	{regexp.MustCompile(`^\s*(\{\s*["}]|\[)`), errors.New("looks like JSON; want a pprof profile, which is protobuf")},
}

// match returns the error of the format of data, nil if none matches.
func (all lookalikes) match(data []byte) error {
	for _, known := range all {
		if known.start.Match(startOf(data)) {
			return known.err
		}
	}
	return nil
}

// Lookalike returns an error that names the format of data, and a program that makes profiles of it, if it is one that people take
// for a profile and that nothing here reads. If it does not know, it returns nil.
func Lookalike(data []byte) error {
	if foldedtranslator.IsUTF16(data) {
		return foldedtranslator.ErrUTF16
	}
	return foreign.match(data)
}

// lookalikeError says what malformed data is instead of a pprof. If it does not know, it returns nil.
func lookalikeError(data []byte) error {
	err := cmp.Or(Lookalike(data), related.match(data))
	switch {
	case err != nil:
		return err
	case isText(startOf(data)):
		return errors.New("looks like text; want a pprof profile, which is protobuf")
	case isOTLP(data):
		return errOTLP
	}
	return nil
}

// IsLegacy reports whether data starts like a profile in a format from before protobuf: those of
// gperftools, tcmalloc and jemalloc, Java's, or the text of net/http/pprof.
func IsLegacy(data []byte) bool {
	err := related.match(data)
	return err == errLegacy || err == errDebugText //nolint:errorlint // they are never wrapped
}

// startOf returns as many bytes of data as are compared.
func startOf(data []byte) []byte { return data[:min(len(data), 512)] }

// isText reports whether the start of some data is text. Protobuf messages have control
// characters.
func isText(start []byte) bool {
	for i, r := range string(start) {
		cut := i > len(start)-utf8.UTFMax
		if r == utf8.RuneError && !cut || unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) {
			return false
		}
	}
	return len(start) > 0
}

// isOTLP reports whether data is an OTLP message: resources and their scopes, which are messages
// where pprof has integers, and a dictionary.
func isOTLP(data []byte) (is bool) {
	const resources, dictionary = 1, 2
	c := wire.New(data)
	for c.Next() {
		if c.Field != resources && c.Field != dictionary || c.Type != wire.BytesType {
			return false
		}
		is = is || c.Field == resources && c.Stop > c.Start && data[c.Start]&7 == wire.BytesType
	}
	return is && c.Err == nil
}
