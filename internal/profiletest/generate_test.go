// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// What is generated is valid, survives google/pprof's own writing and reading but for what is
// documented, and uses every field.
func TestGeneratePprof(t *testing.T) {
	var text strings.Builder
	for seed := range uint64(Rounds(t, 200, 5000)) {
		p := GeneratePprof(NewRand(seed))
		require.NoError(t, p.CheckValid(), "seed %d", seed)
		parsed, err := profile.ParseUncompressed(Pprof(t, p))
		require.NoError(t, err, "seed %d", seed)
		expanded := expand.Pprof(p)
		require.Empty(t, expand.Diff(expand.Normalize(expanded, expand.AsPprof), expand.Normalize(expand.Pprof(parsed), expand.AsPprof)), "seed %d", seed)
		for _, e := range expanded {
			text.WriteString(e.Header())
			for _, s := range e.Samples {
				text.WriteString(s.Identity() + " = " + s.Sum.String() + "\n")
			}
		}
	}
	for _, part := range []string{
		`"thread"=string("a")`, `"thread"=[`, `"bytes"=int64(1) "bytes"`, `"bytes"=int64(0)`, `{"unit"=`, `"both"=[`, `"trace_id"=string("0102")`,
		"is_folded", "has_inline_frames", "build_id.go", "build_id.gnu", "kernel.kallsyms", `""/""@"":`, `"end_timestamp_ns"=int64(-7)`, `"end_timestamp_ns"=[`,
		`link "0102`, "values and timestamps", "no data", " = 0\n", " = -",
	} {
		if !strings.Contains(text.String(), part) { // assert.Contains would print it all
			t.Errorf("no profile has %s", part)
		}
	}
}
