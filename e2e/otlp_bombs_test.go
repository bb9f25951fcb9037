// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// rawMessage is a request that is marshalled already, for codec.
type rawMessage []byte

// codec sends messages of OTLP as they are.
type codec struct{}

func (codec) Name() string                    { return "proto" }
func (codec) Marshal(v any) ([]byte, error)   { return v.(rawMessage), nil }
func (codec) Unmarshal(_ []byte, _ any) error { return nil }

// nestedLists is an attribute value in this many lists.
func nestedLists(lists int) []byte {
	var reversed []byte // from the inside
	for range lists {
		for _, number := range []protowire.Number{1, 5} { // of a value in a list, and of a list as a value
			head := protowire.AppendTag(nil, number, protowire.BytesType)
			head = protowire.AppendVarint(head, uint64(len(reversed)))
			slices.Reverse(head)
			reversed = append(reversed, head...)
		}
	}
	slices.Reverse(reversed)
	return reversed
}

// TestGatewaySurvivesBombsOfOTLP_M3 sends messages to the gateway that take a gigabyte of memory, or the whole
// stack, if they are decoded.
func TestGatewaySurvivesBombsOfOTLP_M3(t *testing.T) {
	parallel(t)
	const samples, lists = 6_000_000, 2_000_000
	tiny := nested(bytes.Repeat([]byte{2<<3 | 2, 0}, samples), 1, 2, 2)
	bombs := map[string][]byte{"tiny samples": tiny, "nested lists": nested(nestedLists(lists), 1, 1, 1, 2)}

	box := newContainer(t, containerLimit)
	grpcAddress, httpAddress := freeAddress(t), freeAddress(t)
	path, args := box.command(program(t))
	c := runConfig(t, path, "gateway.yaml", env{"DATA_DIR": t.TempDir(), "OTLP_GRPC_LISTEN": grpcAddress, "OTLP_HTTP_LISTEN": httpAddress, "WINDOW": "100ms"}, args...)
	connection, err := grpc.NewClient(grpcAddress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	good := pprofileotlp.NewExportRequestFromProfiles(profiletest.Small(t))
	rounds := profiletest.Rounds(t, 1, 10)
	for range rounds {
		for name, bomb := range bombs {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			var nothing any
			err := connection.Invoke(ctx, "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", rawMessage(bomb), &nothing,
				grpc.ForceCodec(codec{}), grpc.UseCompressor(gzip.Name))
			cancel()
			if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "otlp_limit") {
				t.Errorf("%s by gRPC: %v", name, err)
			}
			code, said, err := postOTLP("http://"+httpAddress+otlpPath, bomb)
			if err != nil || code != http.StatusBadRequest || !strings.Contains(said, "otlp_limit") {
				t.Errorf("%s by HTTP: %d: %s, %v", name, code, said, err)
			}
			if _, err := pprofileotlp.NewGRPCClient(connection).Export(t.Context(), good); err != nil {
				t.Errorf("a good message after %s: %v", name, err)
			}
		}
	}
	peak := box.requireWithinLimit(t, c.collector)
	profiletest.Injected(t, fmt.Sprintf("%d bombs, peak of %d MiB", rounds*4, peak))
}
