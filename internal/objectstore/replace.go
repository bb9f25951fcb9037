// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// A file replaces others of its directory that are named in a manifest beside it: see recordfile.Manifest. In a bucket, the manifest is
// NAME.replaces, so that a list has it after its file. It is stored before its file: a list with the file has it, also if the list takes
// several requests. The replaced objects are removed when no list can be in use that has them without the file.
const (
	manifestPrefix, manifestSuffix = ".", recordfile.ManifestSuffix
	// replaceTime is how long lists are in use.
	replaceTime = 2 * time.Minute
	// maxManifests bounds the bytes of all manifests that a list reads. One manifest is in memory at a time.
	maxManifests = 16 << 20
)

// ofManifest returns the name of the file of a manifest, in a bucket or a directory.
func ofManifest(name string) (of string, ok bool) {
	directory, base := path.Split(name)
	of, ok = strings.CutSuffix(strings.TrimPrefix(base, manifestPrefix), manifestSuffix)
	return directory + of, ok
}

// withoutReplaced removes the objects that others replace, with their indexes. failed has the files of which it is not known what they
// replace. err wraps fs.ErrNotExist if an object was removed after it was listed.
func withoutReplaced(ctx context.Context, b *bucket, objects map[string]*object) (failed []error, err error) {
	keys := make([]string, 0, len(objects))
	for key := range objects {
		keys = append(keys, key)
	}
	left := int64(maxManifests)
	replaced, unlisted := recordfile.Replaced(keys, func(key string) ([]byte, error) {
		directory, name := path.Split(key)
		o := objects[key+manifestSuffix]
		if o == nil { // a directory may have been copied as it is
			o = objects[directory+recordfile.ManifestName(name)]
		}
		switch {
		case err != nil:
			return nil, err
		case o == nil:
			return nil, fs.ErrNotExist
		case o.size == 0:
			return nil, nil // ParseManifest rejects it
		case o.size > recordfile.MaxManifest:
			return nil, fmt.Errorf("has %d bytes, more than %d", o.size, recordfile.MaxManifest)
		case o.size > left:
			return nil, fmt.Errorf("is not read: all that are needed have more than %d bytes", maxManifests)
		}
		left -= o.size
		data, getErr := o.get(ctx, 0, o.size)
		err = getErr
		return data, getErr
	})
	if err != nil {
		return nil, err
	}
	for key := range replaced {
		delete(objects, key)
		delete(objects, key+recordfile.IndexSuffix)
	}
	for _, e := range unlisted {
		e.File = b.path(e.File)
		failed = append(failed, e)
	}
	return failed, nil
}

// replace removes the objects that a stored file replaces. Its manifest stays.
func (u *Uploader) replace(ctx context.Context, f *localFile) error {
	for _, name := range f.replaces {
		for _, suffix := range []string{"", recordfile.IndexSuffix, manifestSuffix} {
			if parsed, _ := u.parse(name); suffix == manifestSuffix && parsed.Span == 0 {
				continue
			}
			if err := u.bucket.remove(ctx, u.key(name)+suffix, u.options.Timeout); err != nil {
				return err
			}
		}
	}
	return nil
}

// readManifest reads the manifest of a file that replaces others.
func (u *Uploader) readManifest(f *localFile) error {
	data, err := recordfile.ReadManifest(u.path(f.name))
	if err != nil {
		return err
	}
	directory, base := path.Split(f.name)
	names, err := recordfile.ParseManifest(base, data)
	if err != nil {
		return fmt.Errorf("%s: the list of the files that it replaces %w", u.path(f.name), err)
	}
	for _, name := range names {
		f.replaces = append(f.replaces, directory+name)
	}
	f.manifest = data
	return nil
}
