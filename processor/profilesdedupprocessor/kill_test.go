// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// Environment variables that make the test binary the process to kill: the directory that it
// writes to, and the value of acknowledge.
const (
	envKilledDir         = "PROFILES_DEDUP_TEST_DIR"
	envKilledAcknowledge = "PROFILES_DEDUP_TEST_ACKNOWLEDGE"
)

const endOfPayload = "end"

// appendTo is a next consumer that appends to a file, which survives a SIGKILL: a line for
// each sample, "id value", and one after each payload. It rejects every fifth payload.
func appendTo(file *os.File) nextFunc {
	attempts := 0
	return func(_ context.Context, pd pprofile.Profiles) error {
		if attempts++; attempts%5 == 0 {
			return errors.New("unavailable")
		}
		var lines bytes.Buffer
		d := pd.Dictionary()
		eachProfile(pd, func(p pprofile.Profile) {
			for _, s := range p.Samples().All() {
				l := d.StackTable().At(int(s.StackIndex())).LocationIndices().At(0)
				fmt.Fprintln(&lines, d.LocationTable().At(int(l)).Address(), s.Values().At(0))
			}
		})
		fmt.Fprintln(&lines, endOfPayload)
		_, err := file.Write(lines.Bytes())
		return err
	}
}

// numbered is a payload of one sample, at address id.
func numbered(id uint64) pprofile.Profiles {
	pd := payloadtest.Interval(1, 1, int64(id%7+1))
	d := pd.Dictionary()
	d.LocationTable().AppendEmpty()
	d.LocationTable().AppendEmpty().SetAddress(id)
	d.StackTable().AppendEmpty()
	d.StackTable().AppendEmpty().LocationIndices().Append(1)
	p := payloadtest.First(pd)
	p.Samples().At(0).SetStackIndex(1)
	p.SetProfileID(pprofile.ProfileID{1, byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
	return pd
}

const killedProducers = 4

// TestKilledProcessHelper is the process that the tests below kill.
func TestKilledProcessHelper(t *testing.T) {
	dir := os.Getenv(envKilledDir)
	if dir == "" {
		t.Skip("other tests run it, in a process of its own")
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		return f
	}
	cfg := createDefaultConfig().(*Config)
	cfg.Window = 10 * time.Millisecond
	cfg.Acknowledge = os.Getenv(envKilledAcknowledge)
	cfg.RetryOnFailure.InitialInterval, cfg.RetryOnFailure.MaxInterval = 5*time.Millisecond, 5*time.Millisecond
	p, err := newDedupProcessor(nopSettings(), cfg, appendTo(open("accepted")))
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	acknowledged := open("acknowledged")
	var next atomic.Uint64
	var producers sync.WaitGroup
	var ready sync.Once
	for range killedProducers {
		producers.Go(func() {
			for {
				id := next.Add(1)
				for { // a client with short timeouts, which retries
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rand.IntN(40))*time.Millisecond)
					err := p.ConsumeProfiles(ctx, numbered(id))
					cancel()
					if errors.Is(err, errStopping) {
						return
					}
					if err == nil {
						break
					}
				}
				fmt.Fprintln(acknowledged, id)
				ready.Do(func() { fmt.Println("ready") })
				time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
			}
		})
	}
	<-terminated
	require.NoError(t, p.Shutdown(context.Background()))
	producers.Wait()
}

// runAndKill runs the process for a random time and ends it with sig. It returns the acknowledged
// IDs, in order, and the accepted sums, by ID.
func runAndKill(t *testing.T, acknowledge string, sig syscall.Signal) (acknowledged []uint64, sums map[uint64]int64) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledProcessHelper$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), envKilledDir+"="+dir, envKilledAcknowledge+"="+acknowledge)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" { // lines of the testing package
	}
	time.Sleep(time.Duration(20+rand.IntN(150)) * time.Millisecond)
	require.NoError(t, cmd.Process.Signal(sig))
	var rest []string
	for lines.Scan() {
		rest = append(rest, lines.Text())
	}
	if err := cmd.Wait(); sig == syscall.SIGTERM {
		require.NoError(t, err, strings.Join(rest, "\n"))
	}
	read := func(name string) []string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		all := strings.Split(string(data), "\n")
		return all[:len(all)-1] // without a torn last line
	}
	for _, line := range read("acknowledged") {
		id, err := strconv.ParseUint(line, 10, 64)
		require.NoError(t, err)
		acknowledged = append(acknowledged, id)
	}
	sums = map[uint64]int64{}
	var payload [][2]uint64
	for _, line := range read("accepted") {
		if line != endOfPayload {
			var id, value uint64
			_, err := fmt.Sscan(line, &id, &value)
			require.NoError(t, err)
			payload = append(payload, [2]uint64{id, value})
			continue
		}
		for _, sample := range payload {
			sums[sample[0]] += int64(sample[1])
		}
		payload = payload[:0]
	}
	for id, sum := range sums {
		require.Equalf(t, int64(id%7+1), sum, "%d arrived once", id)
	}
	return acknowledged, sums
}

func missing(acknowledged []uint64, sums map[uint64]int64) (at []int) {
	for i, id := range acknowledged {
		if _, ok := sums[id]; !ok {
			at = append(at, i)
		}
	}
	return at
}

// requireNothingLost runs the process several times, and requires that each acknowledged payload was sent.
func requireNothingLost(t *testing.T, acknowledge string, sig syscall.Signal, name string) {
	t.Helper()
	total, rounds := 0, profiletest.Rounds(t, 3, 200)
	for range rounds {
		acknowledged, sums := runAndKill(t, acknowledge, sig)
		require.Empty(t, missing(acknowledged, sums))
		total += len(acknowledged)
	}
	profiletest.Account(t, fmt.Sprintf("%d %s with %s", rounds, name, acknowledge), total, total, 0)
	require.Positive(t, total)
	t.Logf("%s: %d acknowledged, none lost", acknowledge, total)
}

// After SIGTERM at a random time under load, each acknowledged payload has been sent once.
func TestTerminatedProcessLosesNothing_P9(t *testing.T) {
	requireNothingLost(t, acknowledgeOnReceive, syscall.SIGTERM, "SIGTERM")
	requireNothingLost(t, acknowledgeOnFlush, syscall.SIGTERM, "SIGTERM")
}

// After SIGKILL, no acknowledged payload is lost with on_flush. With on_receive, those of the last
// windows are lost, which were not accepted yet.
func TestKilledProcess_P10(t *testing.T) {
	requireNothingLost(t, acknowledgeOnFlush, syscall.SIGKILL, "SIGKILL")

	total, kills, lost := 0, 0, 0
	for range profiletest.Rounds(t, 3, 200) {
		acknowledged, sums := runAndKill(t, acknowledgeOnReceive, syscall.SIGKILL)
		kills++
		at := missing(acknowledged, sums)
		total, lost = total+len(acknowledged), lost+len(at)
		if len(at) == 0 {
			continue
		}
		// Each producer may have been about to record one that was acknowledged before.
		late := 0
		for _, id := range acknowledged[at[0]:] {
			if _, accepted := sums[id]; accepted {
				late++
			}
		}
		require.LessOrEqualf(t, late, killedProducers, "accepted after the first that is missing (%d of %d)", at[0], len(acknowledged))
	}
	require.Positive(t, total)
	t.Logf("on_receive: %d acknowledged, %d of the last windows lost", total, lost)
	profiletest.Injected(t, fmt.Sprintf("%d SIGKILL with on_receive, %d samples of the last windows lost of %d", kills, lost, total))
}
