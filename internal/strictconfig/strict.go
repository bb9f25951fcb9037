// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package strictconfig reads and checks the configuration of a component.
//
// [Unmarshal] rejects what confmap accepts silently: unknown keys next to embedded
// settings of confighttp, fractions of whole numbers, and durations without a unit.
// [Checks] is for Validate methods. All errors name the path of the key within the
// component and have one grammar: `server::read_timeout is 30: must be ...`.
package strictconfig

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal reads the configuration of a component into the struct that config points
// to. It is for the Unmarshal method of that struct; the sections in it need none of
// their own.
//
// The error reads on after the name in quotes that confmap puts before each error, and
// leaves empty for a whole component: `... is invalid: unknown key server::endpont`.
func Unmarshal(conf *confmap.Conf, config any) error {
	if errs := check("", conf.ToStringMap(), reflect.TypeOf(config)); len(errs) > 0 {
		// Not %w: confmap would announce joined errors with one more line.
		return fmt.Errorf("is invalid: %v", errors.Join(errs...)) //nolint:errorlint // see above
	}
	return conf.Unmarshal(config)
}

// check compares a value of a configuration with the type that it is read into.
// It leaves alone what confmap rejects by itself.
func check(path string, value any, into reflect.Type) (errs []error) {
	into, optional := underlying(into)
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at := strings.TrimPrefix(path+confmap.KeyDelimiter+key, confmap.KeyDelimiter)
			switch into.Kind() {
			case reflect.Map:
				errs = append(errs, check(at, value[key], into.Elem())...)
			case reflect.Struct:
				if field, found := fieldOf(into, key); found {
					errs = append(errs, check(at, value[key], field)...)
				} else if !optional || key != "enabled" {
					errs = append(errs, fmt.Errorf("unknown key %s", at))
				}
			}
		}
	case []any:
		for i, element := range value {
			if into.Kind() == reflect.Slice {
				errs = append(errs, check(path+confmap.KeyDelimiter+strconv.Itoa(i), element, into.Elem())...)
			}
		}
	case int, int64, uint64, float64:
		number := reflect.ValueOf(value)
		whole := !number.CanFloat() || number.Float() == math.Trunc(number.Float()) && math.Abs(number.Float()) < math.MaxInt64
		switch {
		case into == reflect.TypeFor[time.Duration]():
			if !number.IsZero() {
				errs = append(errs, fmt.Errorf("%s is %v: must be a duration with a unit, such as 30s", path, value))
			}
		case reflect.PointerTo(into).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		case into.Kind() >= reflect.Int && into.Kind() <= reflect.Uint64 && !whole:
			errs = append(errs, fmt.Errorf("%s is %v: must be a whole number", path, value))
		}
	}
	return errs
}

// underlying removes pointers and configoptional.Optional from a type.
func underlying(t reflect.Type) (_ reflect.Type, optional bool) {
	for {
		get, found := reflect.PointerTo(t).MethodByName("GetOrInsertDefault")
		switch {
		case t.Kind() == reflect.Pointer:
			t = t.Elem()
		case found:
			t, optional = get.Type.Out(0).Elem(), true
		default:
			return t, optional
		}
	}
}

// fieldOf returns the type of the field that a key is read into.
func fieldOf(structure reflect.Type, key string) (reflect.Type, bool) {
	for field := range structure.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get(confmap.MapstructureTag), ",")
		if options == "squash" {
			if found, ok := fieldOf(field.Type, key); ok {
				return found, true
			}
		} else if name == key && field.IsExported() {
			return field.Type, true
		}
	}
	return nil, false
}

// Checks collects what is wrong with a configuration.
type Checks struct{ errs []error }

// That notes, unless ok, that the value of a key is wrong. must says how it has to
// be, after "must be".
func (c *Checks) That(ok bool, key string, value any, must string, arguments ...any) {
	if ok {
		return
	}
	format := "%s is %v: must be %s"
	switch value.(type) {
	case string, []string:
		format = "%s is %q: must be %s"
	}
	c.errs = append(c.errs, fmt.Errorf(format, key, value, fmt.Sprintf(must, arguments...)))
}

// Add notes errors in the same grammar, of which any may be nil.
func (c *Checks) Add(errs ...error) { c.errs = append(c.errs, errs...) }

// Err is all that was noted, nil if nothing was.
func (c *Checks) Err() error { return errors.Join(c.errs...) }
