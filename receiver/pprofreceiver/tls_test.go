// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// With client_ca_file, the server accepts only clients with a certificate.
func TestTLS(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:         true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(signed)
	require.NoError(t, err)
	certificate := tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: private}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: signed},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, tls: {cert_file: "+at("cert.pem")+", key_file: "+at("key.pem")+", client_ca_file: "+at("cert.pem")+"}}", newSink(t))
	profile := profiletest.Pprof(t, samplePprof("/bin/app", 1))
	assert.Equal(t, http.StatusBadRequest, b.push("", profile).status, "without TLS")

	authorities := x509.NewCertPool()
	authorities.AddCert(parsed)
	for _, certificates := range [][]tls.Certificate{nil, {certificate}} {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: authorities, Certificates: certificates, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		}}
		t.Cleanup(client.CloseIdleConnections)
		response, err := client.Post(strings.Replace(b.url("/v1/pprof"), "http:", "https:", 1), "", bytes.NewReader(profile))
		if certificates == nil {
			require.Error(t, err, "without a certificate")
			continue
		}
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusNoContent, response.StatusCode)
	}
}
