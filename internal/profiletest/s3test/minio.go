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
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"
)

// MinIO starts a real server with an empty bucket, and sets credentials. Without bin/minio, which `make bin/minio` builds, it skips
// the test.
func MinIO(t *testing.T) (endpoint string, client *minio.Client) {
	m := NewMinIO(t)
	m.Start()
	return m.Endpoint, m.Client
}

// Real is a MinIO server, which keeps its objects when it is stopped.
type Real struct {
	Endpoint string
	Client   *minio.Client

	t                *testing.T
	program, address string
	directory, home  string
	output           bytes.Buffer
	command          *exec.Cmd // nil while it is stopped
}

// NewMinIO returns a server that is not started.
func NewMinIO(t *testing.T) *Real {
	m := &Real{t: t, program: program(t), directory: t.TempDir(), home: t.TempDir()}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	require.NoError(t, err)
	m.address = listener.Addr().String()
	require.NoError(t, listener.Close())
	m.Endpoint = "http://" + m.address
	SetEnvironment(t)
	m.Client, err = minio.New(m.address, &minio.Options{
		Creds: credentials.NewStaticV4("test-access-key", Secret, ""), Region: "us-east-1", MaxRetries: 1, Transport: &http.Transport{DisableKeepAlives: true},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		m.Stop()
		if t.Failed() {
			t.Log(m.output.String())
		}
	})
	return m
}

// Start starts the server, and creates the bucket if there is none.
func (m *Real) Start() {
	m.command = exec.Command(m.program, "server", "--quiet", "--address", m.address, "--console-address", "localhost:0", m.directory) // #nosec G204 -- the server
	m.command.Env = append(os.Environ(), "MINIO_ROOT_USER=test-access-key", "MINIO_ROOT_PASSWORD="+Secret, "MINIO_BROWSER=off", "MINIO_UPDATE=off", "HOME="+m.home)
	m.command.Stdout, m.command.Stderr = &m.output, &m.output
	require.NoError(m.t, m.command.Start())
	require.Eventually(m.t, func() bool {
		err := m.Client.MakeBucket(m.t.Context(), Bucket, minio.MakeBucketOptions{})
		return err == nil || minio.ToErrorResponse(err).Code == minio.BucketAlreadyOwnedByYou
	}, time.Minute, time.Second/10, "MinIO does not start")
}

// Stop kills the server.
func (m *Real) Stop() {
	if m.command == nil {
		return
	}
	_ = m.command.Process.Kill()
	_ = m.command.Wait()
	m.command = nil
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
