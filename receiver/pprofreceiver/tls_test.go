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
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// With client_ca_file, the server accepts only clients with a certificate, in each protocol.
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
	next := newSink(t)
	b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, tls: {cert_file: "+at("cert.pem")+", key_file: "+at("key.pem")+", client_ca_file: "+at("cert.pem")+"}}", next)

	authorities := x509.NewCertPool()
	authorities.AddCert(parsed)
	clientOf := func(certificates ...tls.Certificate) *http.Client {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: authorities, Certificates: certificates, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		}}
		t.Cleanup(client.CloseIdleConnections)
		return client
	}
	url := "https://" + b.server.Addr().String()
	profile := profiletest.Pprof(t, samplePprof("/bin/app", 1))
	trusted := clientOf(certificate)
	for _, w := range protocols {
		body, headers := w.wrap(t, profile)
		request, err := http.NewRequest(http.MethodPost, url+w.path, bytes.NewReader(body))
		require.NoError(t, err)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := trusted.Do(request)
		require.NoError(t, err, w.name)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, w.success, response.StatusCode, w.name)
	}
	assert.Equal(t, 2*len(protocols), next.SampleCount())

	response, err := clientOf().Post(url+"/v1/pprof", "", bytes.NewReader(profile))
	if err == nil {
		_ = response.Body.Close() // the test fails
	}
	require.Error(t, err, "without a certificate")
	response, err = http.Post("http://"+b.server.Addr().String()+"/v1/pprof", "", bytes.NewReader(profile))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusBadRequest, response.StatusCode, "without TLS")
	assert.Equal(t, 2*len(protocols), next.SampleCount())
}
