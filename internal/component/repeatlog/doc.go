// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package repeatlog reports trouble that goes on, such as a full disk or a backend that is away: a warning at once,
// one a minute with a count while it lasts, and a line when it is over. The status of the component follows, so that
// a health check shows it.
package repeatlog
