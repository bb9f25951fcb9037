// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package partialerror reads the errors of consumers: which Profiles of a payload they did not accept, and
// whether a retry may help.
package partialerror

import (
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror"
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

// IsPermanent reports whether err is permanent. An error that joins those of several consumers, as of two pipelines
// of one receiver, is so only if each of them is: any other consumer has asked for a retry.
func IsPermanent(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return consumererror.IsPermanent(err)
	}
	for _, e := range joined.Unwrap() {
		if !IsPermanent(e) {
			return false
		}
	}
	return len(joined.Unwrap()) > 0
}

// ForCaller returns err such that consumererror.IsPermanent, which other components use, agrees with IsPermanent.
func ForCaller(err error) error {
	if consumererror.IsPermanent(err) && !IsPermanent(err) {
		return errors.New(err.Error())
	}
	return err
}
