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

// An error that joins those of several consumers is permanent if each of them is, also for components that ask consumererror.
func TestJoinedErrorsArePermanentIfEachIs(t *testing.T) {
	permanent, retryable := consumererror.NewPermanent(errors.New("never")), errors.New("later")
	for _, test := range []struct {
		err       error
		permanent bool
	}{
		{permanent, true},
		{errors.Join(permanent, permanent), true},
		{errors.Join(permanent, retryable), false},
		{multierr.Append(permanent, retryable), false},
		{retryable, false},
	} {
		require.Equal(t, test.permanent, ingest.IsPermanent(test.err))
		require.Equal(t, test.permanent, consumererror.IsPermanent(ingest.ForCaller(test.err)))
		require.EqualError(t, ingest.ForCaller(test.err), test.err.Error())
	}
	require.NoError(t, ingest.ForCaller(nil))
}
