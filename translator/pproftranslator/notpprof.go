// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// errLegacy is that of profiles in the formats from before protobuf.
var errLegacy = errors.New("looks like a profile in a format from before protobuf, such as gperftools'; convert it with `otelprof convert --to pprof` or `go tool pprof -proto`")

// lookalikes is what people send instead of a pprof, by how it starts. The first match counts.
var lookalikes = []struct {
	start *regexp.Regexp
	err   error
}{
	{regexp.MustCompile(`^go 1\.\d+ trace\x00`), errors.New("looks like an execution trace of Go, as /debug/pprof/trace serves it; want a profile, such as that of /debug/pprof/profile")},
	{regexp.MustCompile(`^goroutine \d+ `), errors.New("looks like a list of goroutines, as net/http/pprof serves it with ?debug=2; want the same without debug")},
	{regexp.MustCompile(`^(heap profile: .*@ heap/|[\w/.-]+ profile: total |--- (mutex|contention):)`),
		errors.New("looks like text, as net/http/pprof serves it with ?debug=1; want the same without debug, or convert this with `otelprof convert --to pprof` or `go tool pprof -proto`")},
	{regexp.MustCompile(`^(heap profile:|heapz?_v2/|growthz|fragmentationz|--- \w+ |%warn)`), errLegacy},
	{regexp.MustCompile(`^(\x00{8}\x03|\x00{4}\x03\x00{4})`), errLegacy}, // CPU: words of 64 bits, or of 32
	{regexp.MustCompile(`(?i)^\s*<(!doctype|html|head|body|\?xml)`), errors.New("looks like a page in HTML; want a pprof profile, such as that of /debug/pprof/heap")},
	{regexp.MustCompile(`(?i)^--.+\r?\ncontent-`), errors.New("looks like a form, as `curl -F` sends it; want the profile itself, as `curl --data-binary @FILE` sends it")},
	{regexp.MustCompile(`^\s*(\{\s*["}]|\[)`), errors.New("looks like JSON; want a pprof profile, which is protobuf")},
}

// maxStart is how many bytes of data are compared.
const maxStart = 512

// notPprof says what malformed data is instead of a pprof, or returns nil.
func notPprof(data []byte) error {
	start := data[:min(len(data), maxStart)]
	for _, lookalike := range lookalikes {
		if lookalike.start.Match(start) {
			return lookalike.err
		}
	}
	if isText(start) {
		return errors.New("looks like text; want a pprof profile, which is protobuf")
	}
	return nil
}

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
