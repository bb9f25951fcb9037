// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package webui shows a profile with pprof's own views: [Handler] is its web UI, [Top] its
// table of functions.
//
// Nothing but the profile is read. The pages that open source files or binaries and those that
// save settings are not mounted: a profile may name any path of the host.
package webui
