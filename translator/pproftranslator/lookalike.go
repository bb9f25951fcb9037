// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
)

// What malformed data is instead of a pprof: a profile in a format from before protobuf, OTLP, or, by notPprof, anything else.
var (
	errLegacy = errors.New("looks like a profile in a format from before protobuf, such as gperftools' or the text of net/http/pprof with ?debug=1; convert it with `otelprof convert --format pprof` or `go tool pprof -proto`")
	errOTLP   = errors.New("looks like OTLP; want a pprof profile; the Collector's `otlp` receiver accepts OTLP profiles")
)

func notPprof(name string) error {
	return fmt.Errorf("looks like %s; want a pprof profile, which is protobuf", name)
}

// format is one of data that people send instead of a pprof message, by how it starts.
type format struct {
	err   error
	start *regexp.Regexp
}

// foreign are the formats that nothing here reads, and related those that another input reads, or another program. The first
// match counts.
var (
	foreign = []format{
		{notPprof("a list of goroutines (?debug=2)"), regexp.MustCompile(`^goroutine \d+ `)},
		{notPprof("a heap profile of jemalloc (`jeprof --collapsed` makes folded stacks of it)"), regexp.MustCompile(`^heap_v2/`)},
		{notPprof("the data of perf record (`perf script --header` prints what is accepted)"), regexp.MustCompile(`^PERFILE2`)},
		{notPprof("a file of speedscope"), regexp.MustCompile(`^\s*\{[^\x00]*"\$schema"\s*:\s*"https://www\.speedscope\.app/`)},
		{notPprof("a CPU profile of V8 (.cpuprofile; speedscope shows it, and the package @datadog/pprof of npm records pprof)"), regexp.MustCompile(`^\s*\{[^\x00]*"nodes"\s*:\s*\[\s*\{[^\x00]*"callFrame"`)},
		{notPprof("a heap profile of V8 (.heapprofile; the package @datadog/pprof of npm records pprof)"), regexp.MustCompile(`^\s*\{\s*"head"\s*:\s*\{[^\x00]*"callFrame"`)},
		{notPprof("a trace of Chrome"), regexp.MustCompile(`^\s*(\{[^\x00]*"traceEvents"\s*:|\[\s*\{[^\x00]*"ph"\s*:)`)},
		{notPprof("a page in HTML"), regexp.MustCompile(`(?i)^\s*<(!doctype|html|head|body|\?xml)`)},
		{notPprof("a form (`curl --data-binary @FILE` sends the profile itself)"), regexp.MustCompile(`(?i)^--.+\r?\ncontent-`)},
	}
	related = []format{
		{errLegacy, regexp.MustCompile(`^(heap profile:|[\w/.-]+ profile: total |heapz_v2/|growthz|fragmentationz|--- (\w+ |(mutex|contention):)|%warn)`)},
		// CPU, also of Java: words of 32 bits in both orders of bytes, or of 64 bits.
		{errLegacy, regexp.MustCompile(`^\x00{4}(\x03\x00{3}[\x00\x01]\x00{3}|\x00{3}\x03\x00{3}[\x00\x01]|\x00{4}(\x03\x00{7}|\x00{7}\x03))`)},
		{notPprof("an execution trace of Go"), regexp.MustCompile(`^go 1\.\d+ trace\x00`)},
		{errOTLP, regexp.MustCompile(`^\s*\{\s*"(resource[A-Z][a-z]+|dictionary)"`)},
		{notPprof("folded stacks (push them to /ingest with format=folded)"), regexp.MustCompile(`^[\w.$/:<>()\[\] -]+;[^\x00-\x1f]* \d+(\.\d*)?\r?(\n|$)`)},
		{notPprof("JSON"), regexp.MustCompile(`^\s*(\{\s*["}]|\[)`)},
	}
	errText = notPprof("text")
)

// match returns the error of the format of data, nil if none matches.
func match(formats []format, data []byte) error {
	for _, known := range formats {
		if known.start.Match(startOf(data)) {
			return known.err
		}
	}
	return nil
}

// Lookalike returns an error that names the format of data if it is one that people take for a profile and that nothing here
// reads. If it does not know, it returns nil.
func Lookalike(data []byte) error {
	if foldedtranslator.IsUTF16(data) {
		return foldedtranslator.ErrUTF16
	}
	return match(foreign, data)
}

// lookalikeError says what malformed data is instead of a pprof. If it does not know, it returns nil.
func lookalikeError(data []byte) error {
	err := cmp.Or(Lookalike(data), match(related, data))
	switch {
	case err != nil:
		return err
	case isText(startOf(data)):
		return errText
	case isOTLP(data):
		return errOTLP
	}
	return nil
}

// IsLegacy reports whether data starts like a profile in a format from before protobuf: those of
// gperftools and tcmalloc, Java's, or the text of net/http/pprof.
func IsLegacy(data []byte) bool { return match(related, data) == errLegacy } //nolint:errorlint // it is never wrapped

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
