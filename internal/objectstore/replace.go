// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/regularfile"
)

// A file replaces others of its directory that are named in a manifest beside it, one a line: .NAME.replaces. Readers leave those
// files out while there is the manifest and its file. In a bucket, the manifest is NAME.replaces, so that a list has it after its file.
// It is stored before its file: a list with the file has it, also if the list takes several requests. The replaced objects are removed
// when no list can be in use that has them without the file, and then the manifest.
const (
	manifestPrefix, manifestSuffix = ".", ".replaces"
	// replaceTime is how long lists are in use.
	replaceTime = 2 * time.Minute
)

// ofManifest returns the name of the file of a manifest, in a bucket or a directory.
func ofManifest(name string) (of string, ok bool) {
	directory, base := path.Split(name)
	of, ok = strings.CutSuffix(strings.TrimPrefix(base, manifestPrefix), manifestSuffix)
	return directory + of, ok
}

// replacedBy returns the files that a manifest names, as names with the directory of its file.
func replacedBy(of string, manifest []byte) []string {
	directory, base := path.Split(of)
	names := archive.ParseManifest(base, manifest)
	for i := range names {
		names[i] = directory + names[i]
	}
	return names
}

// withoutReplaced removes the objects that others replace, with their indexes. The error wraps fs.ErrNotExist if an object was removed
// after it was listed.
func withoutReplaced(ctx context.Context, objects map[string]*object) error {
	var replaced []string
	for key, o := range objects {
		of, isManifest := ofManifest(key)
		if !isManifest || objects[of] == nil || o.size == 0 || o.size > archive.MaxManifest {
			continue
		}
		data, err := o.get(ctx, 0, o.size)
		if err != nil {
			return err
		}
		replaced = append(replaced, replacedBy(of, data)...)
	}
	for _, key := range replaced {
		delete(objects, key)
		delete(objects, key+recordfile.IndexSuffix)
	}
	return nil
}

// replace removes the objects that a stored file replaces, and then its manifest.
func (u *Uploader) replace(ctx context.Context, f *localFile) error {
	for _, name := range f.replaces {
		for _, key := range []string{u.key(name), u.key(name) + recordfile.IndexSuffix} {
			if err := u.bucket.remove(ctx, key, u.options.Timeout); err != nil {
				return err
			}
		}
	}
	return u.bucket.remove(ctx, u.key(f.name+manifestSuffix), u.options.Timeout)
}

// readManifest reads the manifest of a file of the directory. A file without one replaces nothing.
func (u *Uploader) readManifest(f *localFile) error {
	directory, base := path.Split(f.name)
	data, err := regularfile.Read(u.path(directory+archive.ManifestName(base)), archive.MaxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f.manifest, f.replaces = data, replacedBy(f.name, data)
	return nil
}
