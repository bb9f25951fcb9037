// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads and checks the configuration of a component.
//
// [Unmarshal] rejects what confmap accepts, or rejects without saying what is allowed: unknown keys, durations without a
// unit, and fractions of whole numbers. It turns an optional section off if that is null. [Size] is a number of bytes.
// [Checks] is for Validate methods. All errors name the path of the key within the component and have one grammar:
// `server::read_timeout is 30: must be ...`.
package config

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal reads the configuration of a component into the struct that config points to. It is for the Unmarshal method of
// that struct; the sections in it need none of their own.
func Unmarshal(conf *confmap.Conf, config any) error {
	var r reader
	if r.read("", conf.ToStringMap(), reflect.TypeOf(config)); len(r.errs) > 0 {
		return errors.Join(r.errs...)
	}
	for _, section := range r.off { // confmap would enable it with its defaults
		if err := conf.Merge(confmap.NewFromStringMap(map[string]any{section: map[string]any{"enabled": false}})); err != nil {
			return err
		}
	}
	return conf.Unmarshal(config)
}

// reader compares what is written with the types that confmap reads it into.
type reader struct {
	errs []error
	off  []string // paths of optional sections that are null
}

func (r *reader) read(path string, value any, into reflect.Type) {
	for into.Kind() == reflect.Pointer {
		into = into.Elem()
	}
	get, optional := reflect.PointerTo(into).MethodByName("GetOrInsertDefault") // of configoptional.Optional
	if optional {
		into = get.Type.Out(0).Elem()
	}
	switch value := value.(type) {
	case nil:
		if optional && into.Kind() == reflect.Struct {
			r.off = append(r.off, path)
		}
	case []any:
		off := r.off
		for i, element := range value {
			if into.Kind() == reflect.Slice {
				r.read(join(path, strconv.Itoa(i)), element, into.Elem())
			}
		}
		r.off = off // no path leads into a list
	case map[string]any:
		var keys map[string]reflect.Type
		if into.Kind() == reflect.Struct {
			keys = keysOf(into)
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			switch at := join(path, key); {
			case into.Kind() == reflect.Map:
				r.read(at, value[key], into.Elem())
			case keys[key] != nil:
				r.read(at, value[key], keys[key])
			case keys != nil && !(optional && key == "enabled"):
				r.errs = append(r.errs, fmt.Errorf("unknown key %s: must be one of %s", at, strings.Join(slices.Sorted(maps.Keys(keys)), ", ")))
			}
		}
	default:
		if must := checkScalar(value, into); must != "" {
			r.errs = append(r.errs, wrong(path, value, must))
		}
	}
}

// checkScalar returns what a value must be if it is in place of a section, a duration without a unit, or a number that a
// whole number would round or cut.
func checkScalar(value any, into reflect.Type) (must string) {
	v, isWhole := reflect.ValueOf(value), into.Kind() >= reflect.Int && into.Kind() <= reflect.Uint64
	switch {
	case v.Type() == into: // read and marshalled before
	case into == reflect.TypeFor[time.Duration]():
		if _, err := time.ParseDuration(fmt.Sprint(value)); err != nil { // 0 needs no unit
			return "a duration with a unit, such as 30s or 168h (7 days)"
		}
	case readsItself(into):
	case into.Kind() == reflect.Struct:
		return "a section with keys of its own"
	case isWhole && (v.CanInt() || v.CanUint() || v.CanFloat()):
		number := v.Convert(into)
		if number.Convert(v.Type()).Interface() != value || v.CanUint() && number.CanInt() && number.Int() < 0 {
			return fmt.Sprintf("a whole number of %d bits", into.Bits())
		}
	}
	return ""
}

// readsItself reports whether a type reads its own values.
func readsItself(t reflect.Type) bool {
	t = reflect.PointerTo(t)
	return t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) || t.Implements(reflect.TypeFor[confmap.ScalarUnmarshaler]())
}

// keysOf returns the types that the keys of a section are read into.
func keysOf(section reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for field := range section.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get(confmap.MapstructureTag), ",")
		if options == "squash" {
			maps.Copy(keys, keysOf(field.Type))
		} else if name != "" && field.IsExported() {
			keys[name] = field.Type
		}
	}
	return keys
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + confmap.KeyDelimiter + key
}

// Checks collects the errors of a configuration.
type Checks struct{ errs []error }

// That notes, unless ok, that the value of a key is wrong. must says how it has to
// be, after "must be".
func (c *Checks) That(ok bool, key string, value any, must string, arguments ...any) {
	if ok {
		return
	}
	c.errs = append(c.errs, wrong(key, value, fmt.Sprintf(must, arguments...)))
}

// Memory notes, unless the size is between least and most, that the memory of a key is wrong. Its value may have
// been a share, so the error has the memory limit.
func (c *Checks) Memory(key string, size, least, most Size) {
	c.That(size >= least && size <= most, key, size, "at least %v and at most %v; percentages are of the memory limit, which is %d MiB",
		least, most, MemoryLimit()/MiB)
}

// OneOf notes, unless the value of a key is one of those allowed, that it is wrong.
func (c *Checks) OneOf(key, value string, allowed ...string) {
	c.That(slices.Contains(allowed, value), key, value, "one of %s", strings.Join(allowed, ", "))
}

// variable is a directory in a path that a shell would replace.
var variable = regexp.MustCompile(`(?:^|/)\$([A-Za-z_]\w*)`)

// Path notes that a path, or a glob, is written as for a shell, which the Collector would take literally.
func (c *Checks) Path(key, value string) {
	if found := variable.FindStringSubmatch(value); found != nil {
		c.That(false, key, value, "written with ${env:%s}: $%[1]s is not replaced", found[1])
	}
	c.That(!strings.HasPrefix(value, "~/"), key, value, "written with ${env:HOME}: ~ is not replaced")
}

// ResolvePath follows the links in the part of an absolute path that exists.
func ResolvePath(path string) string {
	for existing := path; ; existing = filepath.Dir(existing) {
		if resolved, err := filepath.EvalSymlinks(existing); err == nil {
			return filepath.Join(resolved, path[len(existing):])
		}
		if existing == filepath.Dir(existing) {
			return path
		}
	}
}

// wrong is the error of a key with a wrong value.
func wrong(key string, value any, must string) error {
	switch value.(type) {
	case string, []string:
		return fmt.Errorf("%s is %q: must be %s", key, value, must)
	}
	return fmt.Errorf("%s is %v: must be %s", key, value, must)
}

// Add notes errors in the same grammar, of which any may be nil.
func (c *Checks) Add(errs ...error) { c.errs = append(c.errs, errs...) }

// Err is all that was noted, nil if nothing was.
func (c *Checks) Err() error { return errors.Join(c.errs...) }
