// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package s3test

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"
)

// MinIO starts a real server with an empty bucket, and sets credentials. Without bin/minio, which `make bin/minio` builds, it skips the test.
func MinIO(t *testing.T) (endpoint string, client *minio.Client) {
	program := program(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	SetEnvironment(t)
	command := exec.Command(program, "server", "--quiet", "--address", address, "--console-address", "localhost:0", t.TempDir()) // #nosec G204 -- the server
	command.Env = append(os.Environ(), "MINIO_ROOT_USER=test-access-key", "MINIO_ROOT_PASSWORD="+Secret, "MINIO_BROWSER=off", "MINIO_UPDATE=off", "HOME="+t.TempDir())
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	})
	endpoint = "http://" + address
	transport := &http.Transport{DisableKeepAlives: true}
	client, err = minio.New(address, &minio.Options{Creds: credentials.NewStaticV4("test-access-key", Secret, ""), Region: "us-east-1", Transport: transport, MaxRetries: 1})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return client.MakeBucket(t.Context(), Bucket, minio.MakeBucketOptions{}) == nil
	}, time.Minute, time.Second/10, "MinIO does not start")
	return endpoint, client
}

// program finds bin/minio at or above the working directory.
func program(t *testing.T) string {
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "bin", "minio")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	t.Skip("no bin/minio: `make bin/minio` builds it")
	return ""
}

// PutDirectory stores the files of a directory in a real server.
func PutDirectory(t *testing.T, client *minio.Client, dir, prefix string) {
	for name, data := range Files(t, dir) {
		_, err := client.PutObject(t.Context(), Bucket, prefix+"/"+name, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{})
		require.NoError(t, err)
	}
}
