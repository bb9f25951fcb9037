// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package configtable

// descriptions are of keys of other modules, by type and key or, if those of a component differ, by component and path. A
// key with a description is in the table even if its default is empty.
var descriptions = map[string]string{
	"confignet.AddrConfig.endpoint":  "The address to listen on: host and port, or the path of a socket.",
	"confignet.AddrConfig.transport": "The network, such as tcp, tcp4, tcp6 or unix.",

	"confighttp.ServerConfig.max_request_body_size": "The largest body of a request as sent.",
	"confighttp.ServerConfig.read_timeout":          "The maximum time to read a request, from its headers to the end of its body.",
	"confighttp.ServerConfig.read_header_timeout":   "The maximum time to read the headers of a request.",
	"confighttp.ServerConfig.write_timeout":         "The maximum time from the end of the headers to the end of the response.",
	"confighttp.ServerConfig.keepalive":             "Keeps connections open between requests. `enabled: false` turns it off.",

	"confighttp.ClientConfig.endpoint":            "The URL of one profile. It excludes `targets`.",
	"confighttp.ClientConfig.timeout":             "The maximum time of a scrape, from the request to the end of the body.",
	"confighttp.ClientConfig.force_attempt_http2": "Tries HTTP/2 over TLS.",
	"confighttp.ClientConfig.keepalive":           "Keeps connections open between scrapes. `enabled: false` turns it off.",

	"confighttp.KeepaliveServerConfig.idle_timeout":      "How long an idle connection stays open.",
	"confighttp.KeepaliveClientConfig.idle_conn_timeout": "How long an idle connection stays open.",
	"confighttp.KeepaliveClientConfig.max_idle_conns":    "The maximum number of idle connections.",

	"configretry.BackOffConfig.enabled":              "Retries after a retryable error.",
	"configretry.BackOffConfig.initial_interval":     "The wait before the first retry.",
	"configretry.BackOffConfig.max_interval":         "The longest wait between two attempts.",
	"configretry.BackOffConfig.multiplier":           "The factor by which the wait grows after each attempt.",
	"configretry.BackOffConfig.randomization_factor": "The share by which each wait varies at random.",
	"configretry.BackOffConfig.max_elapsed_time":     "Ends retries after this time. 0 means no limit.",

	"symbolizeprocessor debuginfod.endpoint": "Not used: the servers are in `urls`.",
	"symbolizeprocessor debuginfod.timeout":  "The maximum time to download a file.",

	"pprofexporter endpoint":                        "The URL of the server. Required.",
	"pprofexporter timeout":                         "The maximum time of a request, which sends one profile.",
	"pprofexporter compression":                     "Compresses requests once more: profiles are gzipped in any case.",
	"pprofexporter headers":                         "Headers of each request, such as X-Scope-OrgID.",
	"pprofexporter tls":                             "TLS, as of all exporters. A URL with http has none.",
	"pprofexporter sending_queue.sizer":             "What `queue_size` counts: requests, items (samples) or bytes.",
	"pprofexporter sending_queue.queue_size":        "The size of the queue.",
	"pprofexporter sending_queue.num_consumers":     "How many payloads are sent at a time.",
	"pprofexporter sending_queue.wait_for_result":   "Callers wait until their profiles are sent.",
	"pprofexporter sending_queue.block_on_overflow": "Callers wait if the queue is full, instead of getting a retryable error.",
	"pprofexporter sending_queue.storage":           "The storage extension that keeps the queue across restarts.",

	"queuebatch.Config.sizer":             "What `queue_size` counts. It must be bytes.",
	"queuebatch.Config.queue_size":        "The size of all queued payloads as OTLP protobuf, in bytes or with a unit.",
	"queuebatch.Config.num_consumers":     "How many queued payloads are written at a time.",
	"queuebatch.Config.wait_for_result":   "Clients wait until their records are in the files.",
	"queuebatch.Config.block_on_overflow": "Clients wait if the queue is full, instead of getting a retryable error.",
	"queuebatch.Config.storage":           "The storage extension that keeps the queue across restarts. Without it, the queue is in memory.",
}
