// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestErrorsSayWhatIsNoPprof checks the errors of what people send instead of a pprof.
func TestErrorsSayWhatIsNoPprof(t *testing.T) {
	form, _ := profiletest.Form(t, profiletest.FormPart{Name: "profile", File: "cpu.pb.gz", Body: []byte("\x1f\x8b")})
	cases := map[string][2]string{
		"html":             {"<!DOCTYPE html>\n<html>", "looks like a page in HTML; want"},
		"index of pprof":   {"<html>\n<head>\n<title>/debug/pprof/</title>", "looks like a page in HTML; want"},
		"xml":              {"<?xml version=\"1.0\"?>", "looks like a page in HTML; want"},
		"json":             {" {\"traceEvents\": []}", "looks like a trace of Chrome; want"},
		"json of unknown":  {`{"events":[1]}`, "looks like JSON; want"},
		"cpuprofile":       {`{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"}}]}`, "looks like a CPU profile of V8"},
		"empty json":       {"{}", "looks like JSON; want"},
		"json list":        {"[1]", "looks like JSON; want"},
		"form":             {string(form), "looks like a form (`curl --data-binary @FILE` sends the profile itself); want"},
		"form of a query":  {"service=checkout&profile=x", "looks like text; want"},
		"text":             {"hello, world\n", "looks like text; want"},
		"not quite ASCII":  {strings.Repeat("é", 512), "looks like text; want"},
		"folded stacks":    {"main;work 10\nmain 1\n", "looks like folded stacks (push them to /ingest with format=folded); want"},
		"jemalloc":         {"heap_v2/524288\n  t*: 1: 2 [0: 0]\n", "looks like a heap profile of jemalloc (`jeprof --collapsed` makes folded stacks of it); want"},
		"fractions":        {"main;work 10.5\nmain 1\n", "looks like folded stacks (push them to /ingest with format=folded); want"},
		"speedscope":       {`{"version":"1","$schema":"https://www.speedscope.app/file-format-schema.json"`, "looks like a file of speedscope; want"},
		"UTF-16":           {"\xff\xfeh\x00i\x00", "is text in UTF-16, as > of Windows PowerShell writes it"},
		"OTLP/JSON":        {`{"resourceProfiles":[]}`, "looks like OTLP; want a pprof profile"},
		"OTLP traces":      {`{ "resourceSpans": []}`, "looks like OTLP; want a pprof profile"},
		"text, empty line": {"\n\n\nhello", "looks like text; want"},
		"binary":           {"\x89PNG\r\n\x1a\n", "pprof: "},
		"damaged at first": {"\x07", "pprof: starts with \"\\a\"; want a pprof profile"},
		"damaged later":    {"\x68\x65\x0f", "pprof: damaged, or not a pprof profile: byte 3, after "},
	}
	for _, kind := range []string{"heap", "allocs", "goroutine", "threadcreate", "mutex", "block"} {
		var text bytes.Buffer
		require.NoError(t, pprof.Lookup(kind).WriteTo(&text, 1))
		cases["debug=1 of "+kind] = [2]string{text.String(), "such as gperftools' or the text of net/http/pprof with ?debug=1; convert it with `otelprof convert"}
	}
	var dump, tracing bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&dump, 2))
	cases["debug=2"] = [2]string{dump.String(), "looks like a list of goroutines (?debug=2); want a pprof profile, which is protobuf"}
	require.NoError(t, trace.Start(&tracing))
	trace.Stop()
	cases["trace"] = [2]string{tracing.String(), "looks like an execution trace of Go; want a pprof profile"}

	pd, err := (&Unmarshaler{}).UnmarshalProfiles(profiletest.Corpus(t)[0].Data)
	require.NoError(t, err)
	cases["OTLP"] = [2]string{string(profiletest.Proto(t, pd)), "looks like OTLP; want a pprof profile; the Collector's `otlp` receiver accepts"}
	pd.ResourceProfiles().At(0).Resource().Attributes().Clear()
	cases["OTLP without a resource"] = [2]string{string(profiletest.Proto(t, pd)), "looks like OTLP; want"}

	for name, c := range cases {
		_, err := (&Unmarshaler{}).UnmarshalProfiles([]byte(c[0]))
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), c[1], name)
	}
}
