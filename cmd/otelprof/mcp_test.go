// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

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
