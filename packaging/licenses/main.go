// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command licenses writes the licences of all modules that are linked into programs, on any
// of the systems that are released, as one text:
//
//	licenses DIRECTORY... >THIRD_PARTY_LICENSES.txt
//
// Each directory has a main package. A module without a licence is an error.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The systems that .goreleaser.yaml lists. No module depends on the architecture alone.
var systems = []string{"linux", "darwin", "windows"}

// licenseFile are the names of files that must go with a copy of a module.
var licenseFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice|patents)([-._].*)?$`)

type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	if err := errors.Join(write(context.Background(), out, os.Args[1:]), out.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, out io.Writer, directories []string) error {
	modules := map[string]module{}
	for _, directory := range directories {
		for _, system := range systems {
			if err := add(ctx, modules, directory, system); err != nil {
				return err
			}
		}
	}
	if len(modules) == 0 {
		return errors.New("no modules: name the directories of programs")
	}
	goRoot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	texts := map[string][]string{} // the modules that have a text
	if err := read(texts, "Go", strings.TrimSpace(string(goRoot))); err != nil {
		return err
	}
	for name, m := range modules {
		if err := read(texts, name+" "+m.Version, m.Dir); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "The programs contain code of these modules, under these licences.")
	sorted := slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
		return cmp.Or(cmp.Compare(slices.Min(texts[a]), slices.Min(texts[b])), cmp.Compare(a, b))
	})
	for _, text := range sorted {
		slices.Sort(texts[text])
		fmt.Fprintf(out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(texts[text], "\n"), text)
	}
	return nil
}

// add lists the modules of a program, apart from our own.
func add(ctx context.Context, modules map[string]module, directory, system string) error {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Module", ".")
	list.Dir = directory
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system)
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list in %s: %w", directory, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var of struct{ Module *module }
		if err := decoder.Decode(&of); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		switch m := of.Module; {
		case m == nil, m.Main, m.Replace != nil && m.Replace.Version == "": // Go's own, and ours
		default:
			modules[m.Path] = *m
		}
	}
}

// read adds the texts in the directory of a module.
func read(texts map[string][]string, name, directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found = true
		trimmed := string(bytes.TrimSpace(text))
		texts[trimmed] = append(texts[trimmed], name+": "+entry.Name())
	}
	if !found {
		return fmt.Errorf("%s has no licence in %s", name, directory)
	}
	return nil
}
