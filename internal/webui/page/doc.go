// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package page answers the requests of a browser, of go tool pprof and of scripts over a directory of
// profile files.
//
// The parameters of a URL select profiles, as the flags of otelprof do. [Page] bounds the memory of all
// requests: two queries run at once, each with a share of it, and others wait or get 429.
//
// Pages are html/template, so that names in profiles are text, and work without scripts. The script and the stylesheet
// in static are files of the program, and a Content-Security-Policy forbids all others in our pages.
package page
