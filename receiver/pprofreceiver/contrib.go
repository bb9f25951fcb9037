// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// acceptContribKeys rewrites the keys of contrib's pprof receiver that have another name or
// place here, so that its configurations work unchanged:
//
//   - Each section may have initial_delay, which has no effect.
//   - protocols.http is server.
//   - Without a section, as before v0.153, the keys belong to self, or, if include is among them, to the section of files that this
//     receiver does not have.
//
// A key that cannot be rewritten stays, and is rejected as unknown. A top-level endpoint is
// never rewritten: the receiver creator adds one to every receiver that accepts it.
func acceptContribKeys(conf *confmap.Conf) error {
	rewritten := map[string]any{}
	move := func(from, to string) {
		if conf.IsSet(from) && !conf.IsSet(to) {
			rewritten[to] = conf.Get(from)
			conf.Delete(from)
		}
	}
	sections := []string{"server", "remote", "file", "self", "protocols"}
	if !slices.ContainsFunc(sections, conf.IsSet) {
		section := "self"
		if conf.IsSet("include") {
			section = "file"
		}
		for _, key := range []string{"include", "block_profile_fraction", "mutex_profile_fraction", "collection_interval", "initial_delay"} {
			move(key, section+"::"+key)
		}
	} else {
		move("protocols::http", "server")
		if server, moved := rewritten["server"]; moved && server == nil { // contrib's default
			rewritten["server"] = map[string]any{}
		}
		if protocols, ok := conf.Get("protocols").(map[string]any); ok && len(protocols) == 0 {
			conf.Delete("protocols")
		}
	}
	if err := conf.Merge(confmap.NewFromStringMap(rewritten)); err != nil {
		return err
	}

	clear(rewritten)
	for _, section := range []string{"remote", "self"} {
		key := section + "::initial_delay"
		if _, err := time.ParseDuration(fmt.Sprint(conf.Get(key))); err == nil {
			conf.Delete(key)
			if !conf.IsSet(section) { // it was the only key
				rewritten[section] = map[string]any{}
			}
		}
	}
	return conf.Merge(confmap.NewFromStringMap(rewritten))
}
