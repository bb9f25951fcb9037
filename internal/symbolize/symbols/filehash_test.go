// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize/symbols"
)

// The expected values are those of coreutils: (head -c4096 F; tail -c4096 F; LENGTH as 16 hex digits | xxd -r -p) | sha256sum.
func TestFileHashIsThatOfTheConvention(t *testing.T) {
	for content, want := range map[string]string{
		"":                         "af5570f5a1810b7af78caf4bc70a660f",
		"short":                    "44a7e1d2bd59d26f377a8dd07d0461ac",
		strings.Repeat("a", 5000):  "0cc60b04256c63b31fb61c375dbd6a56",
		strings.Repeat("ab", 4096): "a7439f7cbf2fa69e751f69fc3dfb09b9",
	} {
		got, err := symbols.FileHash(strings.NewReader(content), int64(len(content)))
		require.NoError(t, err)
		assert.Equal(t, want, got, len(content))
	}
	_, err := symbols.FileHash(bytes.NewReader(make([]byte, 10)), 20)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
