// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpguard says which HTTP requests are not made or not answered.
//
// A client sends the credentials and headers of its configuration to the host of its configuration only, whatever a
// server redirects to: [StayOnHost], [FollowInPublic]. A server does not answer what a page of another site makes a
// browser send: [RejectForeignPages].
package httpguard
