// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package partialerror finds out which Profiles of a payload a consumer did not accept.
package partialerror

import (
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Profiles returns the Profiles that err says were not accepted; all others were. It returns
// false if err does not say so, or if it joins the errors of several consumers: the part that one
// of them did not accept is not that of another.
func Profiles(err error) (pprofile.Profiles, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if partial, ok := err.(xconsumererror.Profiles); ok { //nolint:errorlint // errors.As looks into joined errors, too
			return partial.Data(), partial.Data().ProfileCount() > 0
		}
	}
	return pprofile.Profiles{}, false
}
