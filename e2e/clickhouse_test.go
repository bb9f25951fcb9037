// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

const clickHouseExporter = "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"

// clickHouseTable returns the statement by which the exporter of config/clickhouse creates its table.
func clickHouseTable(t *testing.T) string {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(configs, "clickhouse", "builder-config.yaml"))
	require.NoError(t, err)
	version := regexp.MustCompile(regexp.QuoteMeta(clickHouseExporter) + ` (v\S+)`).FindSubmatch(manifest)
	require.NotNil(t, version)
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", clickHouseExporter+"@"+string(version[1]))
	command.Dir = t.TempDir() // outside of any module
	out, err := command.Output()
	if err != nil && os.Getenv("E2E_REQUIRE") == "" {
		t.Skipf("the module proxy does not have the exporter: %v", err)
	}
	require.NoError(t, err)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &module))
	template, err := os.ReadFile(filepath.Join(module.Dir, "internal", "sqltemplates", "profiles_table.sql"))
	require.NoError(t, err)
	statement := strings.Replace(string(template), "%q.%q %s", "otel_profiles", 1)
	statement = strings.Replace(statement, "%s", "MergeTree", 1)
	return strings.TrimSpace(strings.Replace(statement, "%s", "", 1))
}

// clickHouseRows returns the rows that exporter_profiles.go of the exporter makes of a payload.
func clickHouseRows(pd pprofile.Profiles) (rows []row) {
	dict := pd.Dictionary()
	text := func(i int32) string { return dict.StringTable().At(int(i)) }
	attributes := func(indices pcommon.Int32Slice) map[string]string {
		texts := map[string]string{}
		for _, i := range indices.All() {
			a := dict.AttributeTable().At(int(i))
			texts[text(a.KeyStrindex())] = a.Value().AsString()
		}
		return texts
	}
	for _, rp := range pd.ResourceProfiles().All() {
		resource := map[string]string{}
		for key, value := range rp.Resource().Attributes().All() {
			resource[key] = value.AsString()
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				for _, s := range p.Samples().All() {
					r := row{
						"Timestamp": p.Time().AsTime().Format("2006-01-02 15:04:05.000000000"), "ProfileId": p.ProfileID().String(),
						"SampleType": text(p.SampleType().TypeStrindex()), "SampleUnit": text(p.SampleType().UnitStrindex()),
						"ServiceName": resource["service.name"], "ResourceAttributes": resource,
						"ScopeName": sp.Scope().Name(), "ScopeVersion": sp.Scope().Version(),
						"ProfileAttributes": attributes(p.AttributeIndices()), "SampleAttributes": attributes(s.AttributeIndices()),
						"Values": s.Values().AsRaw(), "TimestampsUnixNano": s.TimestampsUnixNano().AsRaw(),
						"DurationNano": p.DurationNano(), "Period": p.Period(),
					}
					var functions []string
					for _, location := range dict.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
						for _, line := range dict.LocationTable().At(int(location)).Lines().All() {
							functions = append(functions, text(dict.FunctionTable().At(int(line.FunctionIndex())).NameStrindex()))
						}
					}
					r["FunctionNames"] = functions
					if i := int(s.LinkIndex()); i > 0 {
						r["TraceId"], r["SpanId"] = dict.LinkTable().At(i).TraceID().String(), dict.LinkTable().At(i).SpanID().String()
					}
					rows = append(rows, r)
				}
			}
		}
	}
	return rows
}

// TestClickHouseTableAnswersAsOtelprof runs the queries of config/clickhouse/README.md in ClickHouse's engine, on the table that the
// exporter creates.
func TestClickHouseTableAnswersAsOtelprof(t *testing.T) {
	clickHouse.skipWithout(t)
	dir, work, table := t.TempDir(), t.TempDir(), clickHouseTable(t)
	all := fleet(fleetBegin)
	writeFleet(t, dir, all)
	var inserts strings.Builder
	for i := range all {
		for _, r := range clickHouseRows(all[i].payload(t)) {
			line, err := json.Marshal(r)
			require.NoError(t, err)
			inserts.Write(append(line, '\n'))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(work, "rows.jsonl"), []byte(inserts.String()), 0o600))
	queries := sqlBlocks(t, "config/clickhouse/README.md")
	require.Len(t, queries, len(questions))
	results := clickHouse.query(t, work, slices.Concat([]string{table, "INSERT INTO otel_profiles FROM INFILE 'rows.jsonl' FORMAT JSONEachRow"}, queries)...)
	require.Len(t, results, len(questions))
	for i, question := range questions {
		switch question.name {
		case "change between two versions":
			for side, version := range map[string]string{"base": "1.9", "share": "2.0"} {
				functions := byFunction(foldedOf(t, "--service", "checkout", "--type", "cpu", "--label", "service.version="+version, dir), leaf)
				total := 0.0
				for _, value := range functions {
					total += value
				}
				require.Len(t, results[i], len(functions))
				for _, r := range results[i] {
					assert.InEpsilon(t, 100*functions[r["function"].(string)]/total, r[side], 1e-9, "%v %s", r["function"], version)
				}
			}
		case "cost of a function over a fleet":
			for _, r := range results[i] { // it has no rates
				r["cores"] = listed(t, "--service", r["service"].(string), "--type", "cpu", dir).Rate / 1e9 * r["share"].(float64)
			}
			question.check(t, results[i], dir)
		default:
			question.check(t, results[i], dir)
		}
	}
}

// TestClickHouseConfig runs config/clickhouse without a server: senders are told to try again.
func TestClickHouseConfig(t *testing.T) {
	path := os.Getenv("OTELCOL_PROFILES_CLICKHOUSE_BIN")
	if path == "" {
		t.Skip("OTELCOL_PROFILES_CLICKHOUSE_BIN names no program (make test-clickhouse)")
	}
	listen := freeAddress(t)
	c := launch(t, path, []string{
		"CLICKHOUSE_ENDPOINT=clickhouse://" + freeAddress(t) + "/profiles", "OTLP_HTTP_LISTEN=" + listen, "OTLP_GRPC_LISTEN=" + freeAddress(t),
		"HEALTH_LISTEN=" + freeAddress(t), "WINDOW=100ms",
	}, append(retries("processors.profiles_dedup"), "--config", "../config/clickhouse/clickhouse.yaml", "--set=service.telemetry.metrics.level=none",
		"--set=exporters.clickhouse.create_schema=false", "--set=processors.profiles_dedup.retry_on_failure.max_elapsed_time=1s")...)
	c.await(t, "answer", func() bool {
		status, said, err := postOTLP("http://"+listen+otlpPath, asOTLP(t, numbered(t, 21), "checkout", "one"))
		return err == nil && status == http.StatusServiceUnavailable && said != ""
	})
	c.stop(t)
	assert.Contains(t, c.logs.String(), "connection refused")
}
