// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadQueryIgnoresParametersOfTheAuthenticator(t *testing.T) {
	query := url.Values{"token": {"1"}, "my.token": {"2"}, "service.name": {"x"}, "profile_type": {"cpu"}}
	attributes, profileType, err := readQuery(query, []string{"token", "my.token"})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"service.name": "x"}, attributes)
	assert.Equal(t, "cpu", profileType)
}
