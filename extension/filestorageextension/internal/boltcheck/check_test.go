// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package boltcheck

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func checkFile(path string) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return Check(bytes.NewReader(file), int64(len(file)))
}

// TestHealthyDatabases: no database that bbolt has written is damaged, whatever it did with it.
func TestHealthyDatabases(t *testing.T) {
	random := rand.New(rand.NewPCG(profiletest.Seed(t), 0))
	for round := range profiletest.Rounds(t, 6, 300) {
		path := filepath.Join(t.TempDir(), "db")
		options := bbolt.Options{NoSync: true, NoFreelistSync: round%2 == 0, FreelistType: bbolt.FreelistMapType, PageSize: []int{0, 1024, 65536}[round%3]}
		db, err := bbolt.Open(path, 0o600, &options)
		require.NoError(t, err)
		require.NoError(t, checkFile(path), "new")
		for range 30 {
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
				for range 1 + random.IntN(60) {
					b, err := tx.CreateBucketIfNotExists(fmt.Append(nil, "bucket ", random.IntN(4)))
					if err != nil {
						return err
					}
					if random.IntN(10) == 0 {
						if b, err = b.CreateBucketIfNotExists([]byte("nested")); err != nil {
							return err
						}
					}
					key := fmt.Append(nil, "key ", random.IntN(500))
					if random.IntN(3) > 0 {
						err = b.Put(key, make([]byte, random.IntN(1<<random.IntN(16))))
					} else {
						err = b.Delete(key)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}))
			require.NoError(t, checkFile(path))
		}
		require.NoError(t, db.Close())
		require.NoError(t, checkFile(path))
		if round%3 == 0 { // with another setting
			options.NoFreelistSync = !options.NoFreelistSync
			db, err = bbolt.Open(path, 0o600, &options)
			require.NoError(t, err)
			require.NoError(t, db.Close())
			require.NoError(t, checkFile(path))
		}
	}
}

// TestOneMetaIsEnough: the other one is that of a transaction which was interrupted.
func TestOneMetaIsEnough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("default"))
		return err
	}))
	require.NoError(t, db.Close())
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	pageSize := os.Getpagesize()
	for meta := range 2 {
		torn := bytes.Clone(file)
		torn[meta*pageSize+pageHeader+50]++
		require.NoError(t, Check(bytes.NewReader(torn), int64(len(torn))))
		torn[(1-meta)*pageSize+pageHeader+50]++
		require.ErrorIs(t, Check(bytes.NewReader(torn), int64(len(torn))), ErrDamaged)
	}
}
