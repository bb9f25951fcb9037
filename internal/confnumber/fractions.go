// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package confnumber refuses numbers in a configuration that would be cut.
package confnumber

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// RefuseFractions refuses numbers that the keys of a section cannot have, and
// that confmap would cut without a word: 1.5 of a whole number, and 0.5 of a
// duration, which without a unit is in nanoseconds. section is a pointer to the struct
// that conf is read into; the error names each such key.
func RefuseFractions(conf *confmap.Conf, section any) error {
	var errs []error
	eachWhole(reflect.TypeOf(section).Elem(), "", func(key string, duration bool) {
		number, ok := conf.Get(key).(float64)
		if !ok || number == math.Trunc(number) && math.Abs(number) < math.MaxInt64 {
			return
		}
		want := "must be a whole number"
		if duration {
			want = "must be a duration with a unit, as in 30s"
		}
		errs = append(errs, fmt.Errorf("%s: %v, %s", key, number, want))
	})
	return errors.Join(errs...)
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// eachWhole calls found for each key of a configuration that has a whole number or a
// duration.
func eachWhole(of reflect.Type, key string, found func(key string, duration bool)) {
	if get, optional := reflect.PointerTo(of).MethodByName("Get"); optional && of.Kind() == reflect.Struct && get.Type.NumOut() == 1 {
		eachWhole(get.Type.Out(0).Elem(), key, found) // configoptional.Optional
		return
	}
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[time.Duration]():
		found(key, true)
	case reflect.PointerTo(of).Implements(textUnmarshaler): // it sees to it itself
	case kind >= reflect.Int && kind <= reflect.Uint64:
		found(key, false)
	case kind == reflect.Struct:
		for _, field := range reflect.VisibleFields(of) {
			tag, tagged := field.Tag.Lookup("mapstructure")
			name, options, _ := strings.Cut(tag, ",")
			below := key
			switch {
			case !tagged || !field.IsExported():
				continue
			case options == "squash":
			case key == "":
				below = name
			default:
				below = key + confmap.KeyDelimiter + name
			}
			eachWhole(field.Type, below, found)
		}
	}
}
