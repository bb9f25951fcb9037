// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/multierr"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

func TestJoinedErrorsArePermanentIfEachIs(t *testing.T) {
	permanent, retryable := consumererror.NewPermanent(errors.New("never")), errors.New("later")
	require.True(t, ingest.IsPermanent(permanent))
	require.True(t, ingest.IsPermanent(errors.Join(permanent, permanent)))
	require.False(t, ingest.IsPermanent(errors.Join(permanent, retryable)))
	require.False(t, ingest.IsPermanent(multierr.Append(permanent, retryable)))
	require.False(t, ingest.IsPermanent(retryable))
}

func TestForCaller(t *testing.T) {
	permanent, retryable := consumererror.NewPermanent(errors.New("never")), errors.New("later")
	joined := errors.Join(permanent, retryable)
	require.EqualError(t, ingest.ForCaller(joined), joined.Error())
	require.False(t, consumererror.IsPermanent(ingest.ForCaller(joined)))
	for _, err := range []error{nil, permanent, retryable, errors.Join(permanent, permanent)} {
		require.Equal(t, err, ingest.ForCaller(err))
	}
}
