// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// failedPart returns the Profiles that err says were not accepted; all others were. It returns
// false if err does not say so, or if it joins the errors of several consumers: the part that one
// of them did not accept is not that of another.
func failedPart(err error) (pprofile.Profiles, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if partial, ok := err.(xconsumererror.Profiles); ok { //nolint:errorlint // errors.As looks into joined errors, too
			return partial.Data(), partial.Data().ProfileCount() > 0
		}
	}
	return pprofile.Profiles{}, false
}

// withoutPart hides the failed part of err, if there is one, from the caller of ConsumeProfiles: it
// is not what failed of the caller's payload.
func withoutPart(err error) error {
	if err == nil {
		return nil
	}
	return errorWithoutPart{err}
}

type errorWithoutPart struct{ error }

func (e errorWithoutPart) Is(target error) bool { return errors.Is(e.error, target) }

func (e errorWithoutPart) As(target any) bool {
	if _, partial := target.(*xconsumererror.Profiles); partial {
		return false
	}
	return errors.As(e.error, target)
}
