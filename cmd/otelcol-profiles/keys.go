// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
)

// checkKeys rejects wrong keys of our components with their full path. The Collector puts
// several lines before the error of a component, which knows neither its kind nor its name.
var checkKeys = confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return keyChecker{} })

type keyChecker struct{}

// Convert changes nothing. It leaves all other errors to the Collector.
func (keyChecker) Convert(_ context.Context, conf *confmap.Conf) error {
	factories, err := components()
	if err != nil {
		return err
	}
	return errors.Join(
		checkKind(conf, "extensions", factories.Extensions),
		checkKind(conf, "receivers", factories.Receivers),
		checkKind(conf, "processors", factories.Processors),
		checkKind(conf, "exporters", factories.Exporters),
		checkKind(conf, "connectors", factories.Connectors),
	)
}

func checkKind[F component.Factory](conf *confmap.Conf, kind string, factories map[component.Type]F) error {
	section, err := conf.Sub(kind)
	if err != nil {
		return nil //nolint:nilerr // the Collector reports it
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(section.ToStringMap())) {
		var id component.ID
		if id.UnmarshalText([]byte(name)) != nil {
			continue
		}
		factory, known := factories[id.Type()]
		keys, err := section.Sub(name)
		if !known || err != nil {
			continue
		}
		wrong, ours := errors.AsType[*strictconfig.Error](keys.Unmarshal(factory.CreateDefaultConfig()))
		if ours {
			errs = append(errs, wrong.At(kind+confmap.KeyDelimiter+strings.TrimSpace(name)))
		}
	}
	return errors.Join(errs...)
}
