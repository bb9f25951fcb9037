// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestQuestionsOfAPipeAreAnswered: the end of the input does not end the questions before it.
func TestQuestionsOfAPipeAreAnswered(t *testing.T) {
	dir, _ := growing(t)
	input := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	for _, id := range []string{"2", "3", "4"} {
		input += `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"grew","arguments":{}}}` + "\n"
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "mcp", dir)
	command.Env = append(os.Environ(), "OTELPROF_TEST_PROGRAM=1")
	command.Stdin = strings.NewReader(input)
	output, err := command.Output()
	require.NoError(t, err)
	answered := map[int]bool{}
	for line := range strings.Lines(string(output)) {
		var answer struct {
			ID     int
			Result struct {
				IsError           bool
				StructuredContent struct {
					Rows []struct{ Service string }
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line), &answer), line)
		answered[answer.ID] = true
		if answer.ID > 1 {
			assert.False(t, answer.Result.IsError, line)
			assert.NotEmpty(t, answer.Result.StructuredContent.Rows)
		}
	}
	assert.Equal(t, map[int]bool{1: true, 2: true, 3: true, 4: true}, answered)
}

// TestALineThatIsNoMessageIsAnswered: with the errors of JSON-RPC 2.0, and the questions after it are answered, too.
func TestALineThatIsNoMessageIsAnswered(t *testing.T) {
	dir, _ := growing(t)
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	null := json.RawMessage("null")
	for name, test := range map[string]struct {
		line string
		code int
		id   json.RawMessage
	}{
		"not JSON":           {"what grew most?", -32700, null},
		"cut":                {initialize[:50], -32700, null},
		"two values":         {ping + " " + ping, -32700, null},
		"NUL":                {"\x00", -32700, null},
		"not UTF-8":          {"\xff\xfe", -32700, null},
		"too long":           {`{"jsonrpc":"2.0","id":3,"method":"` + strings.Repeat("x", 1<<20) + `"}`, -32600, null},
		"a number":           {"5", -32600, null},
		"a batch":            {"[" + ping + "]", -32600, null},
		"an empty batch":     {"[]", -32600, null},
		"another version":    {`{"jsonrpc":"1.0","id":3,"method":"ping"}`, -32600, json.RawMessage("3")},
		"no string":          {`{"jsonrpc":"2.0","id":"a","method":1}`, -32600, json.RawMessage(`"a"`)},
		"no ID and method":   {`{"jsonrpc":"2.0"}`, -32600, null},
		"an ID of no scalar": {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, null},
	} {
		t.Run(name, func(t *testing.T) {
			for _, input := range []string{
				test.line + "\n" + initialize + "\n\n" + ping + "\r\n",
				initialize + "\n" + test.line + "\r\n" + ping,
				initialize + "\n" + ping + "\n" + test.line,
			} {
				command := exec.CommandContext(t.Context(), os.Args[0], "mcp", dir)
				command.Env = append(os.Environ(), "OTELPROF_TEST_PROGRAM=1")
				command.Stdin = strings.NewReader(input)
				output, err := command.Output()
				require.NoError(t, err)
				answered := map[string]int{}
				for line := range strings.Lines(string(output)) {
					var answer struct {
						Version string `json:"jsonrpc"`
						ID      *json.RawMessage
						Result  json.RawMessage
						Error   struct {
							Code    int
							Message string
						}
					}
					require.NoError(t, json.Unmarshal([]byte(line), &answer), line)
					assert.Equal(t, "2.0", answer.Version)
					id := "null"
					if answer.ID != nil {
						id = string(*answer.ID)
					}
					answered[id] = answer.Error.Code
					assert.Equal(t, answer.Error.Code != 0, answer.Error.Message != "", line)
				}
				assert.Equal(t, map[string]int{"1": 0, "2": 0, string(test.id): test.code}, answered, string(output))
			}
		})
	}
}

// A message is read whole, however little is asked for at a time.
func TestMessagesAreReadInParts(t *testing.T) {
	const message = `{"jsonrpc":"2.0","method":"x"}`
	var answers strings.Builder
	m := newMessages(io.NopCloser(strings.NewReader(" "+message+"  \nno\n\n"+message)), &answers)
	read, err := io.ReadAll(iotest.OneByteReader(m))
	require.NoError(t, err)
	assert.Equal(t, []string{message, message, ""}, strings.Split(string(read), "\n"))
	assert.Equal(t, 1, strings.Count(answers.String(), "\n"))
}
