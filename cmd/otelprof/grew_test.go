// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// growing is an hour of a heap of two pods that grows by 2 objects a minute each, of a service that scales from 1 to 4 replicas in its middle, of a
// calm one, and of a program one of whose functions gets slower.
func growing(t *testing.T) (dir string, end time.Time) {
	t.Helper()
	l := newTimeline()
	for minute := range 60 {
		ago, replicas, encode := time.Duration(60-minute)*time.Minute, 1, int64(100)
		if minute >= 30 {
			replicas, encode = 4, 300
		}
		for pod := range replicas {
			l.cpu("scaled", fmt.Sprint(pod), ago, 10*time.Second, 0.25)
		}
		l.cpu("calm", "a", ago, 10*time.Second, 0.3)
		for pod := range 2 {
			l.heap(fmt.Sprint(pod), ago, int64(100+2*minute))
		}
		p := cpuRun(map[string]int64{"main.encode": encode, "main.rest": 500})
		p.DurationNanos = 10e9
		pd := typed(t, p, "cpu", time.Since(l.end)+ago)
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", "slower")
		l.payloads = append(l.payloads, pd)
	}
	return written(t, l.payloads), l.end
}

func TestGrewFindsLeaksScalingAndSlowFunctions(t *testing.T) {
	dir, _ := growing(t)
	table := succeed(t, "grew", dir)
	lines := strings.Split(strings.TrimSpace(table), "\n")
	require.Len(t, lines, 5, table)
	assert.Regexp(t, `^SERVICE +TYPE +SAMPLE TYPE +BEFORE +AFTER +CHANGE`, lines[0])
	assert.Regexp(t, `(?m)^scaled +cpu +cpu +0\.25 cores +1\.00 cores +\+0\.75 cores +\+300 % *$`, table)
	assert.Regexp(t, `(?m)^slower +cpu +cpu +0\.60 cores +0\.80 cores +\+0\.20 cores +\+33(\.\d)? % *$`, table)
	assert.Regexp(t, `(?m)^checkout +- +objects +2[34]\d ns +39\d ns +\+1[56]\d ns +\+6\d(\.\d)? % *$`, table)
	assert.Regexp(t, `^calm +cpu +cpu +0\.30 cores +0\.30 cores +\+0 cores +\+0 % +noise$`, lines[4])

	functions := succeed(t, "grew", "--service", "slower", "--type", "cpu:cpu", dir)
	assert.Regexp(t, `(?m)^ +\+0\.20 cores +(0\.10 |100\.0 m)cores +0\.30 cores +\+0\.20 cores +(0\.10 |100\.0 m)cores +0\.30 cores +  main\.encode\n`, functions)
	assert.Regexp(t, `(?m)^ +\+0 cores +0 cores +0 cores +\+0\.20 cores +0\.60 cores +0\.80 cores +  main\.main\n`, functions)
	assert.Contains(t, functions, "\n1 function that changed less left out\n")
	assert.NotContains(t, functions, "main.rest")

	var rows []map[string]any
	for line := range strings.Lines(succeed(t, "grew", "--json", dir)) {
		row := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		rows = append(rows, row)
	}
	require.Len(t, rows, 4)
	assert.Equal(t, []any{"scaled", "cpu", false, false}, []any{rows[0]["service"], rows[0]["sample_type"], rows[0]["noise"], rows[0]["new"]})
	assert.InEpsilon(t, 1e9, rows[0]["after"], 0.01)

	assert.Regexp(t, `\nscaled .*\ncheckout .*$`, strings.TrimSpace(succeed(t, "grew", "-n", "2", dir)))
	code, _, stderr := otelprof(t, "grew", "-n", "0", dir)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "--number is 0: must be 1 or more")
	code, _, stderr = otelprof(t, "grew", "--service", "none", dir)
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, stderr, "no profiles match the selection")
}

func TestLsListsValuesByStep(t *testing.T) {
	dir, end := growing(t)
	at := func(minute int) string {
		return end.Add(time.Duration(minute-60) * time.Minute).UTC().Format(time.RFC3339)
	}
	table := succeed(t, "ls", "--step", "1m", "--service", "scaled", "--service", "checkout", dir)
	assert.Regexp(t, `(?m)^`+at(10)+` +scaled +cpu +cpu +0\.25 cores +1 +██████ *$`, table)
	assert.Regexp(t, `(?m)^`+at(50)+` +scaled +cpu +cpu +1\.00 cores +4 +█{24} *$`, table)
	assert.Regexp(t, `(?m)^`+at(10)+` +checkout +- +objects +2(3[89]|4[012]) ns +2 +█{12,14} *$`, table)
	assert.Regexp(t, `(?m)^`+at(50)+` +checkout +- +objects +(39[89]|40[012]) ns +2 +█{22,23} *$`, table)

	var steps []float64
	for line := range strings.Lines(succeed(t, "ls", "--step", "10m", "--service", "scaled", "--json", dir)) {
		row := stepRow{}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		assert.Nil(t, row.Level)
		assert.InDelta(t, 600, row.Seconds, 0)
		assert.Zero(t, row.Time.Unix()%600)
		steps = append(steps, *row.Rate)
	}
	require.GreaterOrEqual(t, len(steps), 6)
	assert.InEpsilon(t, 0.25e9, steps[1], 0.01)
	assert.InEpsilon(t, 1e9, steps[len(steps)-2], 0.01)
	for args, want := range map[string]string{
		"--step=10":        "--step is \"10\": must be a duration of 1s or more, such as 1m",
		"--step=1ms":       "--step is \"1ms\": must be a duration of 1s or more",
		"--step=1s":        "", // 5 series of an hour
		"--service=absent": "no profiles match the selection",
	} {
		code, _, stderr := otelprof(t, "ls", "--step=1m", args, dir)
		assert.Equal(t, want == "", code == exitOK, args)
		assert.Contains(t, stderr, want, args)
	}
}

func TestLsStepsAreBounded(t *testing.T) {
	old, recent := cpuRun(map[string]int64{"a": 1}), cpuRun(map[string]int64{"a": 1})
	old.TimeNanos, recent.TimeNanos = 1e18, 2e18
	code, _, stderr := otelprof(t, "ls", "--step=1s", savePprof(t, old), savePprof(t, recent))
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, stderr, "--step is 1s: makes more than 100000 rows: must be longer, or select less, by service, type or time")
}

func TestTablesCutLongNames(t *testing.T) {
	p := cpuRun(map[string]int64{"main.encode": 500})
	p.DurationNanos = 10e9
	pd := typed(t, p, "cpu", time.Minute)
	long := strings.Repeat("ä", 3000)
	pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", long)
	dir := written(t, []pprofile.Profiles{pd})
	for line := range strings.Lines(succeed(t, "ls", dir)) {
		assert.Less(t, utf8.RuneCountInString(line), 400)
	}
	assert.Contains(t, succeed(t, "ls", "--json", dir), long)
}

func TestPGOIsOfOneProgram(t *testing.T) {
	var all []pprofile.Profiles
	for _, service := range []string{"cart", "checkout"} {
		pd := typed(t, recursive(), "cpu", time.Minute)
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", service)
		all = append(all, pd)
	}
	dir := written(t, all)
	code, _, stderr := otelprof(t, "pgo", dir)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "cart")
	assert.Contains(t, stderr, "select one with --service")
	succeed(t, "pgo", "--service", "cart", dir)
}
