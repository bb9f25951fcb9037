// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

var formats = []string{"pprof", "otlp", "json", "folded", parquet}

const parquet = "parquet"

func (a *app) convert() *cobra.Command {
	c := &cobra.Command{
		Use:   "convert PATH... --format FORMAT [-o FILE]",
		Short: "Write profiles as pprof, OTLP, folded stacks or Parquet",
		Long: `Write the sum of the profiles, or a difference, into one file:

  pprof    for go tool pprof and other pprof tools
  otlp     a ProfilesData message in protobuf, with a resource for each service
  json     the same in OTLP/JSON
  folded   folded stacks, for flamegraph.pl, speedscope and inferno
  parquet  not the sum, but a row for each sample, for SQL engines

pprof holds one profile type: select it with --type. Folded stacks hold one
sample type, by default that of top.`,
		Example: `  otelprof convert --format pprof -o cpu.pb.gz --type cpu ./profiles
  otelprof convert --format folded --type inuse_space ./profiles | flamegraph.pl
  otelprof convert --format otlp -o checkout.otlp cpu.pb.gz
  otelprof convert --format parquet -o profiles.parquet --from -7d ./profiles`,
		Args: paths,
	}
	compared := a.addComparison(c.Flags())
	var format string
	c.Flags().Func("format", "`FORMAT` to write ("+strings.Join(formats, ", ")+")", func(text string) error {
		if format = text; !slices.Contains(formats, text) {
			return fmt.Errorf("must be one of %s", strings.Join(formats, ", "))
		}
		return nil
	})
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	output := c.Flags().StringP("output", "o", archive.Stdin, "`FILE` to write, - for standard output")
	c.RunE = func(c *cobra.Command, args []string) error {
		if format == "" {
			return fmt.Errorf("no --format FORMAT: must be one of %s", strings.Join(formats, ", "))
		}
		if format == parquet {
			return a.convertToParquet(c.Context(), args, compared, *output)
		}
		data, err := a.converted(c.Context(), args, compared, format)
		if err != nil {
			return err
		}
		return a.writeTo(*output, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	return c
}

// convertToParquet writes the selected samples, one payload after the other.
func (a *app) convertToParquet(ctx context.Context, paths []string, c *comparison, output string) error {
	if c.ofBase() != nil {
		return errors.New("a Parquet file holds samples, not a difference: leave out --base, --base-from and --base-to")
	}
	defer c.symbolize.close(a)
	source, err := c.source(ctx, a, paths)
	if err != nil {
		return err
	}
	return a.writeTo(output, func(w io.Writer) error {
		file, empty := lake.NewSamples(w, a.limit), true
		err := source.Each(ctx, c.Selection, func(record *archive.Record, pd pprofile.Profiles) error {
			pd, err := query.Resolve(record, pd)
			if err != nil {
				return err
			}
			empty = false
			return file.Add(pd)
		})
		if err == nil && empty {
			err = query.ErrEmpty
		}
		if err != nil {
			return err
		}
		return file.Close()
	})
}

// writeTo writes the output of fill to standard output, into a device or pipe, or into a file that only its owner reads, and
// which has its name when it is complete. A link at that name is replaced: somebody else may have put it there.
func (a *app) writeTo(path string, fill func(io.Writer) error) error {
	if path == archive.Stdin || path == "/dev/stdout" {
		return fill(a.stdout)
	}
	if isStream(path) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0) // #nosec G304 -- the user names it
		if err != nil {
			return err
		}
		return cmp.Or(fill(f), f.Close())
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return &fs.PathError{Op: "write", Path: path, Err: errors.New("is a directory")}
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".otelprof-*.tmp") // of mode 0600
	if err != nil {
		return err
	}
	err = cmp.Or(fill(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = f.Close() // again, if it was closed
		_ = os.Remove(f.Name())
	}
	return err
}

// isStream reports whether a path is a device, a pipe, or a link of the system to one that is open.
func isStream(path string) bool {
	for _, open := range []string{"/dev/fd/", "/dev/stderr", "/proc/"} {
		if strings.HasPrefix(path, open) {
			return true
		}
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&(os.ModeDevice|os.ModeCharDevice|os.ModeNamedPipe|os.ModeSocket) != 0
}

func (a *app) converted(ctx context.Context, paths []string, c *comparison, format string) ([]byte, error) {
	if c.ofBase() == nil && (format == "otlp" || format == "json") {
		defer c.symbolize.close(a)
		source, err := c.source(ctx, a, paths)
		if err != nil {
			return nil, err
		}
		result, err := source.Merge(ctx, c.Selection, false)
		if err != nil {
			return nil, err
		}
		return marshal(result.Profiles, format)
	}
	compared, err := a.compare(ctx, paths, c)
	if err != nil {
		return nil, err
	}
	p, err := compared.Pprof(false)
	if err != nil {
		return nil, err
	}
	if format == "pprof" {
		var data bytes.Buffer
		err = query.WritePprof(&data, p)
		return data.Bytes(), err
	}
	if types := p.SampleType; format == "folded" && len(types) > 1 {
		kept, err := query.KeepDefault(p)
		if err != nil {
			return nil, err
		}
		a.note("Folded stacks hold one sample type: %s, the default of %d; select another with --type", kept, len(types))
	}
	pd, err := toProfiles(p, compared.New.Result)
	if err != nil {
		return nil, err
	}
	return marshal(pd, format)
}

func marshal(pd pprofile.Profiles, format string) ([]byte, error) {
	switch format {
	case "folded":
		return foldedtranslator.Marshaler{}.MarshalProfiles(pd)
	case "json":
		line, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
		return append(line, '\n'), err
	default:
		return (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	}
}

// toProfiles translates a pprof, which is of the resource of the selection if that has one only.
func toProfiles(p *profile.Profile, of *query.Result) (pprofile.Profiles, error) {
	var message bytes.Buffer
	if err := pproftranslator.WritePprof(&message, p); err != nil {
		return pprofile.Profiles{}, err
	}
	// --max-memory bounds the selection
	limits := pproftranslator.Limits{DecompressedSize: math.MaxInt, Memory: math.MaxInt64, Factor: math.MaxInt}
	pd, err := (&pproftranslator.Unmarshaler{Limits: limits}).UnmarshalProfiles(message.Bytes())
	if from := of.Profiles.ResourceProfiles(); err == nil && from.Len() == 1 {
		from.At(0).Resource().CopyTo(pd.ResourceProfiles().At(0).Resource())
	}
	return pd, err
}

func (a *app) cat() *cobra.Command {
	c := &cobra.Command{
		Use:   "cat PATH...",
		Short: "Write each payload as a line of OTLP/JSON",
		Long: `Write what is selected of each payload as a line of OTLP/JSON, for jq. Strings
are in .dictionary.stringTable, and the fields whose names end in Strindex refer
to them.`,
		Example: `  otelprof cat ./profiles | jq '.dictionary.functionTable | length'
  otelprof cat --trace-id 4bf92f3577b34da6a3ce929d0e0e4736 ./profiles`,
		Args: paths,
	}
	sel := a.addSelection(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		source, err := a.source(args)
		if err != nil {
			return err
		}
		empty := true
		err = source.Each(c.Context(), sel, func(record *archive.Record, pd pprofile.Profiles) error {
			empty = false
			line, err := catLine(pd)
			if err != nil {
				return record.Fail(err)
			}
			_, err = a.stdout.Write(line)
			return err
		})
		if err == nil && empty {
			return query.ErrEmpty
		}
		return err
	}
	return c
}

// catLine drops the entries of the dictionary that the selection does not refer to.
func catLine(pd pprofile.Profiles) ([]byte, error) {
	if err := dictionary.Check(pd); err != nil {
		return nil, err
	}
	all := make([]dictionary.Part, pd.ResourceProfiles().Len())
	for i := range all {
		all[i].Resource = i
	}
	return marshal(dictionary.NewSplitter(pd).Take(all), "json")
}
