// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package labels

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func TestSelectorSelectsValues(t *testing.T) {
	for selector, want := range map[string]string{
		`{}`: " a ab b", ``: " a ab b", `{x="a"}`: "a", `{x!="a"}`: " ab b", `{x=~"a.*"}`: "a ab", `x=~"a"`: "a", `{x!~"a|b"}`: " ab",
		`{x=""}`: " ", `{x!=""}`: "a ab b", `{x=~".*"}`: " a ab b", `{x=~".+",x!="b",}`: "a ab", `{ x = 'a' , "x" = "a" }`: "a",
		"{x=`a`}": "a", `{x="\x61"}`: "a", `{x="\u0061b"}`: "ab",
	} {
		matchers, err := ParseSelector(selector)
		require.NoError(t, err, selector)
		var got []string
	values:
		for _, value := range []string{"", "a", "ab", "b"} {
			for _, m := range matchers {
				assert.Equal(t, "x", m.Name)
				if !m.Matches(t.Context(), value) {
					continue values
				}
			}
			got = append(got, value)
		}
		if want == " " {
			assert.Equal(t, []string{""}, got, selector)
		} else {
			assert.Equal(t, want, strings.Join(got, " "), selector)
		}
	}
}

func TestMalformedSelectorsAreErrors(t *testing.T) {
	for selector, want := range map[string]string{
		`{`: "must end with }", `{x}`: `label "x" must be followed by =`, `{x="a"`: "must end with }", `{x="a}`: `a value must end with "`,
		`{x=a}`: `"a" must be a value in quotes`, `{="a"}`: "must be the name of a label", `{x="a" y="b"}`: `must have a comma before "y=`,
		`{x=~"("}`: `"(" is no regular expression`, `{x=~"a)|(b"}`: `"a)|(b" is no regular expression`, `{x=~"(a{1000}){1000}"}`: "is no regular expression", `{x="\q"}`: "no valid text",
		`{"x}`: `a value must end with "`, `{x==“a”}`: "must be a value in quotes",
		"{" + strings.Repeat(`x="a",`, 101) + "}": "at most 100 labels", strings.Repeat("x", 1<<20): "has 1048576 bytes: must have at most 16384",
	} {
		_, err := ParseSelector(selector)
		require.ErrorContains(t, err, want, "%.40s", selector)
	}
}

func FuzzParseSelector(f *testing.F) {
	f.Add(`{x="a", y!~'b|c', "z z"=` + "`d`}")
	f.Fuzz(func(t *testing.T, text string) {
		matchers, err := ParseSelector(text)
		if err == nil {
			assert.LessOrEqual(t, len(matchers), maxMatchers)
		}
	})
}

// payload has a resource, and samples with some values of an attribute.
func payload(key string, values ...string) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	strings, attributes := pd.Dictionary().StringTable(), pd.Dictionary().AttributeTable()
	strings.Append("", key, "unused")
	attributes.AppendEmpty()
	rp := pd.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr("service.name", "checkout")
	rp.Resource().Attributes().PutInt("process.pid", 7)
	rp.Resource().Attributes().PutEmptyMap("map")
	p := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	for i, value := range values {
		a := attributes.AppendEmpty()
		a.SetKeyStrindex(1)
		a.Value().SetStr(value)
		p.Samples().AppendEmpty().AttributeIndices().FromRaw([]int32{0, int32(i + 1), 99, -1})
	}
	unused := attributes.AppendEmpty()
	unused.SetKeyStrindex(2)
	unused.Value().SetBool(true)
	return pd
}

func TestSetHasTheLabelsOfPayloads(t *testing.T) {
	s := &Set{}
	s.Merge(Of(payload("thread.name", "worker", "main")))
	s.Merge(Of(payload("thread.name", "gc", "")))
	data, err := json.Marshal(s)
	require.NoError(t, err)
	assert.JSONEq(t, `{"labels":{"process.pid":["7"],"service.name":["checkout"],"thread.name":["","gc","main","worker"]}}`, string(data))
	var read Set
	require.NoError(t, json.Unmarshal(data, &read))
	assert.Equal(t, *s, read)

	names, complete := s.Names()
	assert.Equal(t, []string{"process_pid", "service_name", "thread_name"}, names)
	assert.True(t, complete)
	for _, name := range []string{"thread_name", "thread.name"} {
		values, complete := s.Values(name)
		assert.Equal(t, []string{"gc", "main", "worker"}, values)
		assert.True(t, complete)
	}
	for selector, want := range map[string]bool{
		`thread_name="main"`: true, `thread_name="other"`: false, `thread_name!="main"`: true, `none="a"`: false, `none=""`: true, `process_pid=~"[0-9]"`: true,
	} {
		matchers, err := ParseSelector(selector)
		require.NoError(t, err)
		assert.Equal(t, want, s.MayMatch(t.Context(), matchers[0]), selector)
	}
	reference := payload("thread.name", "hidden")
	require.NoError(t, reference.Dictionary().AttributeTable().At(1).Value().FromRaw(nil))
	_, complete = Of(reference).Names()
	assert.False(t, complete, "a value may be a reference to a string")
	s.Merge(nil)
	_, complete = s.Names()
	assert.False(t, complete, "labels of a record are not known")
	assert.True(t, s.MayMatch(t.Context(), Equal("none", "a")))
}

func TestSetIsBounded(t *testing.T) {
	s := &Set{}
	for i := range 100_000 {
		s.add("trace_id", fmt.Sprint(i))
		s.add("pod", fmt.Sprint(i%10))
	}
	_, complete := s.Values("trace_id")
	assert.False(t, complete)
	assert.True(t, s.MayMatch(t.Context(), Equal("trace_id", "none")))
	values, complete := s.Values("pod")
	assert.Len(t, values, 10)
	assert.True(t, complete, "a label with few values")
	data, err := json.Marshal(s)
	require.NoError(t, err)
	assert.Contains(t, string(data), `"trace_id":null`)
	var read Set
	require.NoError(t, json.Unmarshal(data, &read))
	assert.Equal(t, *s, read)

	for i := range 100_000 {
		s.add(fmt.Sprint("key", i), "value")
	}
	assert.LessOrEqual(t, s.Size(), int64(MaxSize))
	_, complete = s.Names()
	assert.False(t, complete)
	require.Error(t, json.Unmarshal([]byte(`{"labels":{"`+strings.Repeat("x", 9*MaxSize)+`":[]}}`), &read))
}

func TestPatternsOfASelectorAreBoundedTogether_A2(t *testing.T) {
	one := `pod=~"(x?){900}"` // of some 3,600 instructions
	_, err := ParseSelector("{" + one + "," + one + "}")
	require.NoError(t, err)
	_, err = ParseSelector("{" + one + "," + one + "," + one + "}")
	require.ErrorContains(t, err, `label "pod": "(x?){900}" makes too large a program: regular expressions must have at most 10000 instructions in total`)
	_, err = ParseSelector(`{pod!~"` + strings.Repeat("a", 9000) + `"}`)
	require.ErrorContains(t, err, "must have at most 8192")

	two, err := ParseSelector("{" + one + "," + one + "}")
	require.NoError(t, err)
	require.NoError(t, Check(two))
	require.EqualError(t, Check(append(two, two[0])), "regular expressions must have at most 10000 instructions in total")
	require.EqualError(t, Check(slices.Repeat([]*Matcher{Equal("pod", "a")}, 101)), "must have at most 100 labels")
}
