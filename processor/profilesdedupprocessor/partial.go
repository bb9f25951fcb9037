// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
)

// withoutPart hides the failed part of err, if there is one, from the caller of ConsumeProfiles: it
// is not the failed part of the caller's payload.
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
