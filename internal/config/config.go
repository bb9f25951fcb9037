// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads and checks the configuration of a component.
//
// [Unmarshal] rejects mistakes that confmap accepts silently or rejects with names of Go: unknown
// keys, a value in place of a section, fractions of whole numbers, and durations without a
// unit. It turns an optional section off if that is null, and reads 64MiB as the number of
// bytes where the Collector's own settings want one. [Size] is such a size in our settings.
// [Checks] is for Validate methods. All
// errors name the path of the key within the component and have one grammar:
// `server::read_timeout is 30: must be ...`.
package config

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
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
// The error is an *[Error]. It reads on after the name in quotes that confmap puts before each
// error, and leaves empty for a whole component: `... is invalid: unknown key server::endpont`.
func Unmarshal(conf *confmap.Conf, config any) error {
	r := reader{changes: map[string]any{}}
	r.read("", conf.ToStringMap(), reflect.TypeOf(config))
	if len(r.problems) > 0 {
		return &Error{r.problems}
	}
	if err := conf.Merge(confmap.NewFromStringMap(r.changes)); err != nil {
		return err
	}
	return conf.Unmarshal(config)
}

// Error describes the wrong keys of a component.
type Error struct{ problems []problem }

// problem is a sentence about the key at path.
type problem struct{ before, path, after string }

// NewError returns the error of a key, with a text that goes on after its path.
func NewError(key, text string) *Error { return &Error{[]problem{{path: key, after: text}}} }

func (e *Error) Error() string { return "is invalid: " + e.At("").Error() }

// At returns the same with the path of the component before that of each key, such as
// receivers::pprof, which the component does not know.
func (e *Error) At(component string) error {
	var errs []error
	for _, p := range e.problems {
		errs = append(errs, errors.New(p.before+join(component, p.path)+p.after))
	}
	return errors.Join(errs...)
}

// reader compares a configuration with the types that it is read into. It leaves
// texts to confmap, which has them as they were written.
type reader struct {
	problems []problem
	changes  map[string]any // by path: values that confmap reads in another form, in that form
}

// read reads the value at path.
func (r *reader) read(path string, value any, into reflect.Type) {
	into, optional := underlying(into)
	switch value := value.(type) {
	case nil:
		// confmap would enable an optional section with its defaults.
		if optional && into.Kind() == reflect.Struct {
			r.changes[path] = map[string]any{"enabled": false}
		}
		return
	case map[string]any:
		r.readSection(path, value, into, optional)
		return
	case []any:
		if into.Kind() == reflect.Slice {
			elements := reader{changes: map[string]any{}} // changes of lists cannot be merged
			for i, element := range value {
				elements.read(join(path, strconv.Itoa(i)), element, into.Elem())
			}
			r.problems = append(r.problems, elements.problems...)
			return
		}
	case string:
		if size, err := ParseSize(value); err == nil && isSize(path, into) {
			r.changes[path] = int64(size)
			return
		}
	}
	if is := checkValue(path, value, into); is != "" {
		r.problems = append(r.problems, problem{path: path, after: is})
	}
}

func (r *reader) readSection(path string, section map[string]any, into reflect.Type, optional bool) {
	var keys map[string]reflect.Type
	if into.Kind() == reflect.Struct {
		keys = keysOf(into)
	}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		at := join(path, key)
		switch {
		case into.Kind() == reflect.Map:
			r.read(at, section[key], into.Elem())
		case into.Kind() != reflect.Struct || optional && key == "enabled":
		case keys[key] == nil:
			must := ": must be one of " + strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
			if key == "path" && keys["directory"] != nil { // of other components
				must = ": must be directory here, or" + strings.TrimPrefix(must, ": must be")
			}
			r.problems = append(r.problems, problem{"unknown key ", at, must})
		default:
			r.read(at, section[key], keys[key])
		}
	}
}

// isSize reports whether a key of the Collector's own settings is a number of bytes, such as
// max_request_body_size.
func isSize(key string, field reflect.Type) bool {
	return strings.HasSuffix(key, "_size") && isInteger(field) && !readsText(field)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + confmap.KeyDelimiter + key
}

// checkValue checks a value that is not a section and, unless something else is wanted, no list.
// It returns what is wrong, as it follows the name of the key.
func checkValue(path string, value any, into reflect.Type) string {
	isNumber, whole := false, true
	switch number := value.(type) {
	case int, int64, uint64:
		isNumber = true
	case float64:
		isNumber, whole = true, number == math.Trunc(number) && math.Abs(number) < math.MaxInt64
	}
	text, isText := value.(string)
	ok, must := true, ""
	switch {
	case reflect.TypeOf(value) == into: // read and marshalled before
	case into == reflect.TypeFor[time.Duration]():
		_, err := time.ParseDuration(text)
		ok, must = isText && err == nil || isNumber && reflect.ValueOf(value).IsZero(), "a duration with a unit, such as 30s or 168h (7 days)"
	case isText && isSize(path, into), into == reflect.TypeFor[Size]():
		size := fmt.Sprint(value)
		if number, isFloat := value.(float64); isFloat { // some sources write every number so
			size = strconv.FormatFloat(number, 'f', -1, 64)
		}
		if _, err := ParseSize(size); err != nil {
			return " " + err.Error()
		}
	case readsText(into):
	case into.Kind() == reflect.Struct:
		ok, must = false, "a section with keys of its own"
	case isInteger(into):
		ok, must = isNumber && whole, "a whole number"
	case into.Kind() == reflect.Bool:
		_, ok = value.(bool)
		must = "true or false"
	}
	if ok {
		return ""
	}
	return wrong("", value, must).Error()
}

func isInteger(t reflect.Type) bool { return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 }

// readsText reports whether a type reads its values itself.
func readsText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[confmap.ScalarUnmarshaler]())
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
