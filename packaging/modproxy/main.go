// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command modproxy writes the modules of a tree into a directory as the module proxy will serve
// them once they are tagged, and prints the variables with which go uses it:
//
//	modproxy [-update] VERSION TREE DIRECTORY
//
// The modules are the root, and cmd/otelcol-profiles, which `go install` accepts only if its
// go.mod requires the root at that version instead of replacing it. With -update, the go.mod and
// go.sum of the tree are changed to that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	root    = "github.com/otelcol-profiles/otelcol-profiles"
	program = "cmd/otelcol-profiles"
)

// outside are directories of a working copy that are not part of its modules.
var outside = []string{".git", "bin", "profiles"}

func main() {
	update := flag.Bool("update", false, "change go.mod and go.sum of "+program)
	flag.Parse()
	if flag.NArg() != 3 {
		fmt.Fprintln(os.Stderr, "usage: modproxy [-update] VERSION TREE DIRECTORY")
		os.Exit(2)
	}
	if err := run(context.Background(), flag.Arg(0), flag.Arg(1), flag.Arg(2), *update); err != nil {
		fmt.Fprintln(os.Stderr, "modproxy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version, tree, directory string, update bool) error {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "modproxy")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := copyTree(tree, work); err != nil {
		return err
	}
	variables, err := environment(ctx, directory)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(variables, "\n"))
	if err := publish(module.Version{Path: root, Version: version}, work, directory); err != nil {
		return err
	}
	nested := filepath.Join(work, filepath.FromSlash(program))
	if err := require(ctx, version, nested, variables); err != nil {
		return err
	}
	if update {
		for _, name := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(filepath.Join(nested, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(tree, filepath.FromSlash(program), name), content, 0o600)
			}
			if err != nil {
				return err
			}
		}
	}
	return publish(module.Version{Path: root + "/" + program, Version: version}, nested, directory)
}

// copyTree copies the regular files of a tree.
func copyTree(from, to string) error {
	tree := os.DirFS(from)
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(outside, name):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, filepath.FromSlash(name)), 0o700)
		case !entry.Type().IsRegular() || name == ".git": // a file in a linked work tree
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, filepath.FromSlash(name)), content, 0o600)
	})
}

// publish writes a module in the layout of the module proxy.
func publish(m module.Version, from, directory string) error {
	at := filepath.Join(directory, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(at, 0o750); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(from, "go.mod"))
	if err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(at, m.Version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(
		zip.CreateFromDir(archive, m, from),
		archive.Close(),
		os.WriteFile(filepath.Join(at, m.Version+".mod"), mod, 0o600),
		os.WriteFile(filepath.Join(at, m.Version+".info"), fmt.Appendf(nil, `{"Version": %q}`, m.Version), 0o600),
		os.WriteFile(filepath.Join(at, "list"), []byte(m.Version+"\n"), 0o600),
	)
}

// environment returns the variables for the directory. Other modules are read from the cache of
// this machine, which has the layout of a proxy, and only then fetched. The cache for our modules
// is another one: their versions are not published yet.
func environment(ctx context.Context, directory string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, err
	}
	cache, proxy, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return []string{
		"GOPROXY=file://" + filepath.ToSlash(directory) + ",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")) + "," + proxy,
		"GOMODCACHE=" + filepath.Join(directory, "modcache"),
		"GONOSUMDB=" + root + "," + root + "/*",
		"GOFLAGS=-modcacherw -trimpath -buildvcs=false",
		"CGO_ENABLED=0",
	}, nil
}

// require makes the program's module depend on the root at its version.
func require(ctx context.Context, version, nested string, variables []string) error {
	for _, arguments := range [][]string{
		{"mod", "edit", "-dropreplace=" + root + "@v0.0.0", "-dropreplace=" + root, "-require=" + root + "@" + version},
		{"mod", "tidy"},
	} {
		command := exec.CommandContext(ctx, "go", arguments...) //nolint:gosec // of the lines above
		command.Dir = nested
		command.Env = append(os.Environ(), variables...)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, out)
		}
	}
	return nil
}
