// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package configtable

// descriptions are of keys of other modules, by component and path. Only these keys have a row.
var descriptions = map[string]string{
	"pprofreceiver server.endpoint":              "The address to listen on.",
	"pprofreceiver server.max_request_body_size": "The largest body of a request as sent.",
	"pprofreceiver remote.endpoint":              "The URL of one profile. It excludes `targets`.",
	"pprofreceiver remote.timeout":               "The maximum time of a scrape.",

	"profilesviewextension endpoint": "The address to listen on.",

	"pprofexporter endpoint": "The URL of the server. Required.",
}
