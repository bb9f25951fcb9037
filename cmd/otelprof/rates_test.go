// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// timeline makes payloads of the last minutes before a whole minute.
type timeline struct {
	end      time.Time
	payloads []pprofile.Profiles
}

func newTimeline() *timeline { return &timeline{end: time.Now().Truncate(time.Minute)} }

func (l *timeline) ago(d time.Duration) uint64 { return uint64(l.end.Add(-d).UnixNano()) }

// cpu adds an interval of a pod that uses so many cores. Without any, it is a Profile without samples.
func (l *timeline) cpu(service, pod string, ago, length time.Duration, cores float64) {
	pd := payloadtest.Interval(l.ago(ago), uint64(length), int64(cores*float64(length)))
	if cores == 0 {
		payloadtest.First(pd).Samples().RemoveIf(func(pprofile.Sample) bool { return true })
	}
	l.payloads = append(l.payloads, payloadtest.With(pd, "service.name", service, "k8s.pod.name", pod))
}

func (l *timeline) heap(pod string, ago time.Duration, objects int64) {
	l.payloads = append(l.payloads, payloadtest.Snapshot(pod, l.ago(ago), objects))
}

// services are three replicas of 0.4 cores that are never profiled at once, a process that was restarted every five minutes, another one
// that is idle in two of three intervals, one that is always idle, and a heap of pods, of which four live.
func services() *timeline {
	l := newTimeline()
	const minutes = 20
	for minute := range minutes {
		ago := time.Duration(minutes-minute) * time.Minute
		for pod := range 3 {
			l.cpu("replicas", fmt.Sprint(pod), ago-time.Duration(pod)*20*time.Second, 10*time.Second, 0.4)
		}
		l.cpu("restarted", fmt.Sprint(minute/5), ago, 10*time.Second, 0.5)
		l.cpu("idle", "a", ago, 10*time.Second, 0)
		for i, cores := range []float64{0.6, 0, 0} {
			l.cpu("sometimes", "a", ago-time.Duration(i)*20*time.Second, 10*time.Second, cores)
		}
		for pod := range 4 {
			l.heap(fmt.Sprint(pod, " ", minute/5), ago, 100)
		}
	}
	return l
}

// listing returns the rows of ls --json by service and sample type.
func listing(t *testing.T, args ...string) map[string]*rated {
	t.Helper()
	byService := map[string]*rated{}
	for line := range strings.Lines(succeed(t, append([]string{"ls", "--json"}, args...)...)) {
		row := &rated{}
		require.NoError(t, json.Unmarshal([]byte(line), row))
		byService[row.Service] = row
	}
	return byService
}

func TestLsShowsTheRateOfTheSeries(t *testing.T) {
	l := services()
	dir := written(t, l.payloads)
	var records bytes.Buffer
	for _, pd := range l.payloads {
		records.Write(profiletest.Prefixed(profiletest.ProtoOfCopy(t, pd)))
	}
	file := profiletest.WriteFile(t, "profiles", records.Bytes()) // without an index
	from := "--from=" + l.end.Add(-15*time.Minute).Format(time.RFC3339)
	to := "--to=" + l.end.Add(-5*time.Second).Format(time.RFC3339)
	for _, args := range [][]string{{dir}, {file}, {from, dir}, {from, file}, {from, to, dir}, {from, to, file}, {"--label", `{k8s_pod_name=~".*"}`, dir}} {
		rows := listing(t, args...)
		for service, want := range map[string]struct {
			rate, each float64
			processes  int
		}{"replicas": {1.2, 0.4, 3}, "restarted": {0.5, 0.5, 4}, "idle": {0, 0, 1}, "sometimes": {0.2, 0.2, 1}} {
			row := rows[service]
			require.NotNil(t, row, "%s: %s", args, service)
			require.NotNil(t, row.Rate, "%s: %s", args, service)
			assert.InDelta(t, want.rate, *row.Rate/1e9, 0.05*want.rate, "%s: %s", args, service)
			assert.InDelta(t, want.each, *row.PerProcess/1e9, 0.05*want.each, "%s: %s", args, service)
			assert.InDelta(t, want.processes, row.Processes, 1, "%s: %s", args, service)
			assert.Nil(t, row.Age)
		}
	}
	rows := listing(t, dir)
	assert.InDelta(t, 600, *rows["replicas"].Covered, 1e-6)
	assert.InDelta(t, 240e9, rows["replicas"].Sum, 0)
	heap := rows["checkout"]
	assert.EqualValues(t, 400, heap.Sum, "the living of 16 pods")
	assert.Equal(t, 4, heap.Processes)
	assert.InDelta(t, time.Since(l.end.Add(-time.Minute)).Seconds(), *heap.Age, 10)
	assert.Nil(t, heap.Rate)
	assert.Nil(t, heap.Covered)

	table := succeed(t, "ls", dir)
	assert.Regexp(t, `(?m)^replicas +cpu +cpu +1\.20 cores +3 processes, 0\.40 cores each +\d+(\.\d)? % of \d+ min.* 60 +60 +4 min `, table)
	assert.Regexp(t, `(?m)^idle +cpu +cpu +0 cores +1 process +1\d(\.\d)? % of \d+ min`, table)
	assert.Regexp(t, `(?m)^checkout +- +objects +400 .* +now, of 4 processes +\d+ s ago `, table)
	assert.Regexp(t, `(?m)^checkout .* at the end, of 4 processes +\d+ s before `, succeed(t, "ls", "--to=-6m", dir))
}

func TestTopShowsTheRateOfTheSeries(t *testing.T) {
	dir := written(t, services().payloads)
	for service, want := range map[string][]string{
		"replicas":  {"Rate: 1.20 cores, of 3 processes, 0.40 cores each (profiled 17 % of 19 min 50 s)\n", "Total: 4 min in 10 min of profiled time\n"},
		"restarted": {"Rate: 0.50 cores, of 1 process at a time of 4, 0.50 cores each (", "Total: 1.67 min in 3 min 20 s of profiled time\n"},
		"sometimes": {"Rate: 0.20 cores, of 1 process (", "Total: 2 min in 10 min of profiled time\n"},
		"idle":      {"Rate: 0 cores, of 1 process (", "Total: 0 ns in 3 min 20 s of profiled time\n"},
	} {
		top := succeed(t, "top", "--service", service, dir)
		for _, text := range want {
			assert.Contains(t, top, text, service)
		}
	}
	_, top, notes := otelprof(t, "top", "--service", "checkout", dir)
	assert.Regexp(t, `^Living: 400 ns now, of 4 processes \(\d+ s ago\)\n`, top)
	assert.Contains(t, notes, "Only snapshots of living processes count; those of ended ones skipped: 12\n")
	assert.Contains(t, top, "\nTotal: 400 ns\n")
	together := succeed(t, "top", "--service", "replicas", "--service", "restarted", dir)
	assert.Contains(t, together, "Rate: 1.70 cores, of 4 processes at a time of 7, ")
}

// TestTopComparesRates: three replicas use 5 % more in ten minutes than in the half hour before.
func TestTopComparesRates(t *testing.T) {
	l := newTimeline()
	for minute := range 40 {
		ago, pods, cores := time.Duration(40-minute)*time.Minute, 3, 0.4
		if minute >= 30 {
			cores = 0.42
		}
		for pod := range pods {
			l.cpu("deployed", fmt.Sprint(pod), ago-time.Duration(pod)*20*time.Second, 10*time.Second, cores)
		}
	}
	dir := written(t, l.payloads)
	code, top, notes := otelprof(t, "top", "--from", l.end.Add(-10*time.Minute).Format(time.RFC3339),
		"--base-from", l.end.Add(-40*time.Minute).Format(time.RFC3339), "--base-to", l.end.Add(-10*time.Minute).Format(time.RFC3339), dir)
	require.Equal(t, exitOK, code, notes)
	assert.Regexp(t, `(?m)^Rate: 1\.26 cores, of 3 processes, .*\nBase: 1\.20 cores, of 3 processes, .*\nChange: \+(4\.9\d|5) %\n`, top)
}

// TestTopComparesACanary: one pod uses half as much again as each of three stable ones, and another service uses less.
func TestTopComparesACanary(t *testing.T) {
	l := newTimeline()
	for minute := range 20 {
		ago := time.Duration(20-minute) * time.Minute
		for pod := range 3 {
			l.cpu("shop", fmt.Sprint("stable-", pod), ago-time.Duration(pod)*15*time.Second, 10*time.Second, 0.4)
		}
		l.cpu("shop", "canary", ago, 30*time.Second, 0.6)
		l.cpu("cart", "cart", ago, 10*time.Second, 0.1)
	}
	dir := written(t, l.payloads)
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"--service", "shop", "--label", "k8s.pod.name=canary", "--base-label", `{k8s_pod_name=~"stable-.*"}`},
			`^Rate: 0\.60 cores, of 1 process .*\nBase: 1\.20 cores, of 3 processes, 0\.40 cores each .*\nChange: \+50 % for each process\n`},
		{[]string{"--service", "shop", "--label", `{k8s_pod_name=~"stable-.*"}`, "--base-service", "cart", "--base-label", "k8s.pod.name=cart"},
			`^Rate: 1\.20 cores, .*\nBase: 0\.10 cores, .*\nChange: \+300 % for each process\n`},
		{[]string{"--service", "cart", "--base-service", "cart", "--base-to", "-15m"}, `^Rate: 0\.10 cores, .*\nBase: 0\.10 cores, .*\nChange: [+−]\S+ %\n`},
	} {
		code, top, notes := otelprof(t, append([]string{"top", dir}, test.args...)...)
		require.Equal(t, exitOK, code, notes)
		assert.Regexp(t, test.says, top)
	}
}

func TestTopMarksNoise(t *testing.T) {
	run := func(encode, rest, start int64) string {
		p := cpuRun(map[string]int64{"main.encode": encode, "main.rest": rest, "main.rare": 2 + encode%7})
		p.TimeNanos = start
		return savePprof(t, p)
	}
	top := succeed(t, "top", "--base", run(1000, 3000, 1e18), run(2000, 3100, 2e18))
	assert.Regexp(t, `(?m)^ +\+10\.0 cores +10\.0 cores +20\.0 cores +\+10\.0 cores +10\.0 cores +20\.0 cores +  main.encode$`, top)
	assert.NotRegexp(t, `noise +main.(encode|main)`, top)
	assert.Regexp(t, `noise +main.rest`, top)
}
