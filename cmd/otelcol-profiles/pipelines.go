// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/otelcol"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

// checkPipelines rejects what the Collector does not find: references to extensions that it would miss only when it starts,
// loops over files, and exporters whose files another one takes for its own.
var checkPipelines = confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return pipelineChecker{} })

type pipelineChecker struct{}

// Convert changes nothing. It leaves all other errors to the Collector.
func (pipelineChecker) Convert(_ context.Context, conf *confmap.Conf) error {
	factories, err := components()
	if err != nil {
		return err
	}
	return errors.Join(checkReferences(conf), checkLoops(conf, factories), checkDirectories(conf, factories))
}

// checkLoops rejects pipelines whose receiver reads the files that their exporter writes: they would never end. No
// connector of our programs takes profiles, so that no pipeline leads to the exporters of another one.
func checkLoops(conf *confmap.Conf, factories otelcol.Factories) error {
	receivers := configsOf(conf, "receivers", factories.Receivers)
	exporters := configsOf(conf, "exporters", factories.Exporters)
	var errs []error
	pipelines, _ := conf.Get("service::pipelines").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(pipelines)) {
		pipeline, _ := pipelines[name].(map[string]any)
		for _, to := range idsOf(pipeline["exporters"]) {
			exporter, writes := exporters[to].(interface{ SamplePaths() ([]string, error) })
			if !writes {
				continue
			}
			paths, pathErr := exporter.SamplePaths()
			for _, from := range idsOf(pipeline["receivers"]) {
				receiver, reads := receivers[from].(interface{ MayRead(path string) bool })
				if reads && pathErr == nil && slices.ContainsFunc(paths, receiver.MayRead) {
					errs = append(errs, fmt.Errorf("service::pipelines::%s never ends: receivers::%s must read no file that exporters::%s writes, such as %s",
						name, from, to, paths[0]))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// checkDirectories rejects exporters that write below the directory of another one, which compacts, uploads and removes what is there.
func checkDirectories(conf *confmap.Conf, factories otelcol.Factories) error {
	exporters := configsOf(conf, "exporters", factories.Exporters)
	pipelines, _ := conf.Get("service::pipelines").(map[string]any)
	directories := map[string]string{} // with links followed, by the ID of the exporter
	for _, pipeline := range pipelines {
		keys, _ := pipeline.(map[string]any)
		for _, id := range idsOf(keys["exporters"]) {
			if files, writes := exporters[id].(*profilesfileexporter.Config); writes {
				if directory, err := filepath.Abs(files.Directory); err == nil {
					directories[id.String()] = config.ResolvePath(directory)
				}
			}
		}
	}
	var errs []error
	ids := slices.Sorted(maps.Keys(directories))
	for _, inner := range ids {
		for _, outer := range ids {
			below, err := filepath.Rel(directories[outer], directories[inner])
			if err == nil && below != "." && filepath.IsLocal(below) {
				errs = append(errs, fmt.Errorf("exporters::%s::directory is %s: must not be in that of exporters::%s, which is %s",
					inner, directories[inner], outer, directories[outer]))
			}
		}
	}
	return errors.Join(errs...)
}

// reference matches the keys of components that refer to extensions.
var reference = regexp.MustCompile(`^(extensions|receivers|processors|exporters|connectors)::[^:]+::(.+::)?(auth::authenticator|middlewares|sending_queue::storage)$` +
	`|^receivers::[^:]+::(storage|watch_observers)$`)

// checkReferences rejects references to extensions that do not start.
func checkReferences(conf *confmap.Conf) error {
	started := idsOf(conf.Get("service::extensions"))
	var errs []error
	for _, key := range slices.Sorted(slices.Values(conf.AllKeys())) {
		section := key[:strings.LastIndex(key, confmap.KeyDelimiter)+len(confmap.KeyDelimiter)]
		if !reference.MatchString(key) || conf.Get(section+"enabled") == false {
			continue
		}
		for _, id := range idsOf(conf.Get(key)) {
			if !slices.Contains(started, id) {
				errs = append(errs, fmt.Errorf("%s: extension %q does not start: define it under extensions and list it in service::extensions", key, id))
			}
		}
	}
	return errors.Join(errs...)
}

// idsOf returns the component IDs in a value: one, or a list, whose elements may be sections with the key id. It
// leaves other values to the Collector.
func idsOf(value any) (ids []component.ID) {
	switch v := value.(type) {
	case string:
		var id component.ID
		if id.UnmarshalText([]byte(v)) == nil {
			ids = append(ids, id)
		}
	case []any:
		for _, element := range v {
			ids = append(ids, idsOf(element)...)
		}
	case map[string]any:
		ids = idsOf(v["id"])
	}
	return ids
}

// configsOf reads the configurations of components as far as that is possible. The Collector reports what is wrong.
func configsOf[F component.Factory](conf *confmap.Conf, kind string, factories map[component.Type]F) map[component.ID]component.Config {
	configs := map[component.ID]component.Config{}
	section, err := conf.Sub(kind)
	if err != nil {
		return nil
	}
	for name := range section.ToStringMap() {
		var id component.ID
		if id.UnmarshalText([]byte(name)) != nil {
			continue
		}
		factory, known := factories[id.Type()]
		keys, err := section.Sub(name)
		if !known || err != nil {
			continue
		}
		cfg := factory.CreateDefaultConfig()
		if keys.Unmarshal(cfg) == nil {
			configs[id] = cfg
		}
	}
	return configs
}
