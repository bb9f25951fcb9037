// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package pprofreceiver

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func makeFIFO(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, syscall.Mkfifo(path, 0o600))
}
