// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
)

// cpuDay returns CPU time in folded stacks, in milliseconds, of a service at a time. Its samples are of a trace.
func cpuDay(t *testing.T, service, at, folded string) pprofile.Profiles {
	t.Helper()
	pd, err := (&foldedtranslator.Unmarshaler{}).UnmarshalProfiles([]byte(folded))
	require.NoError(t, err)
	start, err := time.Parse(time.RFC3339, at)
	require.NoError(t, err)
	rp, dict := pd.ResourceProfiles().At(0), pd.Dictionary()
	rp.Resource().Attributes().PutStr("service.name", service)
	rp.ScopeProfiles().At(0).Scope().Attributes().PutStr(attrkey.ProfileType, "cpu")
	p := rp.ScopeProfiles().At(0).Profiles().At(0)
	p.SetTime(pcommon.NewTimestampFromTime(start))
	p.SetDurationNano(uint64(time.Minute))
	p.SampleType().SetTypeStrindex(int32(dict.StringTable().Len()))
	p.SampleType().SetUnitStrindex(int32(dict.StringTable().Len() + 1))
	dict.StringTable().Append("cpu", "nanoseconds")
	link := dict.LinkTable().AppendEmpty()
	link.SetTraceID([16]byte{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36})
	link.SetSpanID([8]byte{1})
	for _, s := range p.Samples().All() {
		s.Values().SetAt(0, s.Values().At(0)*int64(time.Millisecond))
		if service == "cart" {
			s.SetLinkIndex(int32(dict.LinkTable().Len() - 1))
		}
	}
	return pd
}

// TestQueriesOfTheSQLPage runs the queries of docs/sql.md in DuckDB.
func TestQueriesOfTheSQLPage(t *testing.T) {
	parallel(t)
	if _, err := os.Stat(filepath.Join("..", "bin", "duckdb")); err != nil {
		require.Empty(t, os.Getenv("E2E_REQUIRE"), "make bin/duckdb: %v", err)
		t.Skipf("no DuckDB, which make bin/duckdb installs with npm: %v", err)
	}
	dir := t.TempDir()
	profiles := filepath.Join(dir, "profiles")
	require.NoError(t, os.Mkdir(profiles, 0o700))
	for name, pd := range map[string]pprofile.Profiles{
		"first":  cpuDay(t, "checkout", "2026-11-01T12:00:00Z", "main;parse 60\nmain;encode 40\n"),
		"second": cpuDay(t, "checkout", "2026-11-02T23:59:00Z", "main;parse 50\nmain;encode 150\n"),
		"later":  cpuDay(t, "checkout", "2026-11-03T00:00:00Z", "main;parse 1000\n"),
		"cart":   cpuDay(t, "cart", "2026-11-02T01:00:00Z", "main;add 7\nmain;remove 3\n"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(profiles, name), profiletest.Proto(t, pd), 0o600))
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "sql.md"))
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^bin/otelprof (convert .*)$`).FindStringSubmatch(string(page))
	require.NotNil(t, command)
	arguments := strings.Fields(command[1])
	for i, argument := range arguments {
		if argument == "./profiles" || argument == "profiles.parquet" {
			arguments[i] = filepath.Join(dir, argument)
		}
	}
	code, _, stderr, _ := otelprof(t, arguments...)
	require.Zero(t, code, stderr)

	queries := regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	want := []string{
		`[{"service":"cart","function":"add","seconds":0.007},{"service":"cart","function":"remove","seconds":0.003},
		  {"service":"checkout","function":"parse","seconds":1.11},{"service":"checkout","function":"encode","seconds":0.19}]`,
		`[{"function":"encode","points":35},{"function":"parse","points":-35}]`,
		`[{"service":"cart","span_id":"0100000000000000","milliseconds":7,"stack":"main;add"},
		  {"service":"cart","span_id":"0100000000000000","milliseconds":3,"stack":"main;remove"}]`,
	}
	require.Len(t, queries, len(want))
	script, err := filepath.Abs("duckdb.cjs")
	require.NoError(t, err)
	rows := func(text []byte) (list []map[string]any) {
		require.NoError(t, json.Unmarshal(text, &list), "%s", text)
		return list
	}
	for i, query := range queries {
		sql := exec.CommandContext(t.Context(), "node", script)
		sql.Dir, sql.Stdin = dir, strings.NewReader(query[1])
		out, err := sql.CombinedOutput()
		require.NoError(t, err, "%s\n%s", query[1], out)
		if i == 1 { // which of the two comes first is open
			assert.ElementsMatch(t, rows([]byte(want[i])), rows(out))
			continue
		}
		assert.JSONEq(t, want[i], string(out))
	}
}
