// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package configtable

import (
	"encoding"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
)

const module = "github.com/otelcol-profiles/otelcol-profiles/"

// introduction stands above the table of these rows.
func introduction(rows []row) string {
	text := "\n"
	if slices.ContainsFunc(rows, func(r row) bool { return strings.Contains(r.kind, "](") }) {
		text += "A linked type has further keys. The table states its defaults that differ from the Collector's.\n"
	}
	if slices.ContainsFunc(rows, func(r row) bool { return r.kind == "size" }) {
		text += "A size is a number of bytes, has a unit (`64MiB`), or is a percentage of the process's memory limit.\n"
	}
	return text + "Error messages write `::` for the dot in a key.\n"
}

var markdown = strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;")

// row is one key of the configuration.
type row struct{ key, kind, value, description string }

// reference returns the table of all keys of a default configuration.
func reference(t *testing.T, config any) string {
	t.Helper()
	v := reflect.ValueOf(config)
	comments := comments{t: t, byPackage: map[string]map[string]string{}, component: path.Base(v.Type().Elem().PkgPath())}
	rows := comments.structRows("", v.Elem())
	var table strings.Builder
	table.WriteString(introduction(rows) + "\n| Key | Type | Default | Description |\n|---|---|---|---|\n")
	for _, r := range rows {
		if r.value != "" {
			r.value = "`" + r.value + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", r.key, r.kind, r.value, markdown.Replace(r.description))
	}
	table.WriteString("\n")
	return table.String()
}

// structRows lists the keys of a struct. Of a struct of another module it lists only those that have a description for
// this component: its own documentation has the others.
func (c comments) structRows(prefix string, v reflect.Value) (rows []row) {
	ours := isOurs(v.Type())
	keys := map[string]string{} // by field
	for i := range v.NumField() {
		if key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("mapstructure"), ","); key != "" {
			keys[v.Type().Field(i).Name] = key
		}
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key, options, tagged := strings.Cut(field.Tag.Get("mapstructure"), ",")
		if !field.IsExported() || key == "-" || key == "" && !tagged {
			continue
		}
		squashed := strings.Contains(options, "squash") || strings.Contains(options, "remain")
		r := row{key: prefix + key, description: descriptions[c.component+" "+prefix+key]}
		stated := ""
		if ours {
			r.description, stated = c.of(v.Type(), field.Name, keys)
		}
		if !ours && !squashed && r.description == "" {
			continue
		}
		below := c.fieldRows(&r, v.Field(i), ours)
		// The code sets a list later. A share depends on the memory of the machine.
		if r.value == "[]" && strings.HasPrefix(stated, "[") || r.kind == "size" && strings.HasSuffix(stated, "%") {
			r.value = stated
		}
		switch {
		case r.kind == "section": // its keys say enough
		case !squashed:
			rows = append(rows, r)
		case ours && prefix == "" && field.Type.Kind() == reflect.Struct && !isOurs(field.Type): // the component extends it
			rows = append(rows, row{key: "…", kind: "keys of " + link(field.Type), value: c.changed("", v.Field(i))})
		}
		rows = append(rows, below...)
	}
	return rows
}

// upstream are the default configurations of other modules.
var upstream = map[reflect.Type]any{
	reflect.TypeFor[confighttp.ServerConfig]():         confighttp.NewDefaultServerConfig(),
	reflect.TypeFor[confighttp.ClientConfig]():         confighttp.NewDefaultClientConfig(),
	reflect.TypeFor[configretry.BackOffConfig]():       configretry.NewDefaultBackOffConfig(),
	reflect.TypeFor[exporterhelper.QueueBatchConfig](): exporterhelper.NewDefaultQueueConfig(),
}

// changed lists the defaults of a struct of another module that differ from its own, apart from keys with a row.
func (c comments) changed(prefix string, v reflect.Value) string {
	original := map[string]string{}
	if value, ok := upstream[v.Type()]; ok {
		pointer := reflect.New(v.Type())
		pointer.Elem().Set(reflect.ValueOf(value))
		for _, r := range leaves("", pointer.Elem()) {
			original[r.key] = r.value
		}
	}
	var different []string
	for _, r := range leaves("", v) {
		if r.value != original[r.key] && descriptions[c.component+" "+prefix+r.key] == "" {
			different = append(different, r.key+": "+r.value)
		}
	}
	return strings.Join(different, "`, `")
}

// leaves lists the keys of a struct of another module that have a value.
func leaves(prefix string, v reflect.Value) (rows []row) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key, options, tagged := strings.Cut(field.Tag.Get("mapstructure"), ",")
		if !field.IsExported() || key == "-" || key == "" && !tagged {
			continue
		}
		value := v.Field(i)
		if has := value.Addr().MethodByName("HasValue"); has.IsValid() { // configoptional.Optional
			if !has.Call(nil)[0].Bool() {
				continue
			}
			value = value.Addr().MethodByName("Get").Call(nil)[0].Elem()
		}
		_, isText := reflect.TypeAssert[encoding.TextUnmarshaler](value.Addr())
		switch {
		case value.Kind() == reflect.Struct && !isText && strings.Contains(options, "squash"):
			rows = append(rows, leaves(prefix, value)...)
		case value.Kind() == reflect.Struct && !isText:
			rows = append(rows, leaves(prefix+key+".", value)...)
		case value.Kind() == reflect.Slice && value.Len() == 0, value.Kind() == reflect.Map, value.Kind() == reflect.Pointer, value.Kind() == reflect.Interface:
		default:
			rows = append(rows, row{key: prefix + key, value: textOf(value)})
		}
	}
	return rows
}

// fieldRows fills in type and default of a key, and lists the keys below it.
func (c comments) fieldRows(r *row, v reflect.Value, ours bool) []row {
	t := v.Type()
	if get := v.Addr().MethodByName("GetOrInsertDefault"); get.IsValid() { // configoptional.Optional
		below := c.fieldRows(r, get.Call(nil)[0].Elem(), ours)
		r.kind = "optional " + r.kind
		return below
	}
	_, isText := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
	_, isScalar := reflect.TypeAssert[confmap.ScalarUnmarshaler](v.Addr())
	if isText || isScalar {
		r.kind = "string"
		if isScalar {
			r.kind = "size"
		}
		r.value = textOf(v)
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		r.kind = "section"
		if isOurs(t) {
			for field := range t.Fields() {
				if strings.Contains(field.Tag.Get("mapstructure"), ",squash") && !isOurs(field.Type) {
					r.kind = "section with keys of " + link(field.Type)
					r.value = c.changed(r.key+".", v.FieldByIndex(field.Index))
				}
			}
		} else {
			r.kind = "section " + link(t)
		}
		prefix := r.key
		if prefix != "" && !strings.HasSuffix(prefix, ".") { // not squashed
			prefix += "."
		}
		if !isOurs(t) {
			r.value = c.changed(prefix, v)
		}
		return c.structRows(prefix, v)
	case reflect.Slice:
		r.kind, r.value = "list", textOf(v)
		if t.Elem().Kind() == reflect.Struct && ours {
			return c.structRows(r.key+"[].", reflect.New(t.Elem()).Elem())
		}
	case reflect.Map:
		r.kind = "map"
	case reflect.Pointer:
		r.kind = "string"
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64, reflect.String:
		r.kind = strings.TrimSuffix(t.Kind().String(), "64")
		if t == reflect.TypeFor[time.Duration]() {
			r.kind = "duration"
		}
		if !v.IsZero() || ours {
			r.value = textOf(v)
		}
	default:
		c.t.Fatalf("%s has the type %s, which configtable cannot describe", r.key, t)
	}
	return nil
}

func isOurs(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath()+"/", module) }

// link leads to the documentation of a type of another module.
func link(t reflect.Type) string {
	pkg, name := t.PkgPath(), t.String()
	if public, _, internal := strings.Cut(pkg, "/internal/"); internal {
		return fmt.Sprintf("[%s](https://pkg.go.dev/%s)", path.Base(public), public)
	}
	return fmt.Sprintf("[%s](https://pkg.go.dev/%s#%s)", name, pkg, t.Name())
}

// textOf writes a default as in YAML.
func textOf(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		items := make([]string, v.Len())
		for i := range items {
			items[i] = textOf(v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	text, ok := reflect.TypeAssert[encoding.TextMarshaler](v)
	if !ok && v.CanAddr() {
		text, ok = reflect.TypeAssert[encoding.TextMarshaler](v.Addr())
	}
	if ok {
		if marshaled, err := text.MarshalText(); err == nil {
			return string(marshaled)
		}
	}
	written := fmt.Sprint(v.Interface())
	if v.Type() == reflect.TypeFor[time.Duration]() { // 5m0s is 5m
		written = strings.TrimSuffix(written, "0s")
		if written == "" || written[len(written)-1] >= '0' && written[len(written)-1] <= '9' {
			written += "0s"
		}
		if strings.HasSuffix(written, "h0m") {
			written = strings.TrimSuffix(written, "0m")
		}
	}
	return written
}
