// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscripttranslator_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/translator/perfscripttranslator"
)

func testdata(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(data)
}

func unmarshal(t testing.TB, u perfscripttranslator.Unmarshaler, text string) (pprofile.Profiles, perfscripttranslator.Report) {
	t.Helper()
	pd, report, err := u.UnmarshalWithin([]byte(text), math.MaxInt64, nil)
	require.NoError(t, err)
	profiletest.RequireConforms(t, pd)
	requireInside(t, pd)
	return pd, report
}

// requireInside fails if a timestamp is not within its Profile.
func requireInside(t testing.TB, pd pprofile.Profiles) {
	t.Helper()
	for _, p := range profiletest.Expand(t, pd) {
		for _, s := range p.Samples {
			for _, point := range s.Points {
				if point.Timestamp < p.Time || point.Timestamp >= p.Time+p.Duration {
					t.Fatalf("%d is not within %d and the %d ns after it", point.Timestamp, p.Time, p.Duration)
				}
			}
		}
	}
}

// show writes profiles out: a line for each Profile and, below it, for each sample. Times are in microseconds of the
// Profile.
func show(t testing.TB, pd pprofile.Profiles) string {
	t.Helper()
	var b strings.Builder
	for _, p := range profiletest.Expand(t, pd) {
		fmt.Fprintf(&b, "%s %s/%s\n", expand.Text(p.Scope.Attributes, attrkey.ProfileType), p.Type, p.Unit)
		for _, s := range p.Samples {
			b.WriteString("  ")
			for i, f := range slices.Backward(s.Stack) {
				if len(f.Lines) == 0 {
					fmt.Fprintf(&b, "%x", f.Address)
				}
				for j, line := range slices.Backward(f.Lines) {
					if b.WriteString(line.Function); line.Line > 0 {
						fmt.Fprintf(&b, "(%s:%d)", line.Filename, line.Line)
					}
					if j > 0 {
						b.WriteString("<")
					}
				}
				if b.WriteString("@" + f.Mapping.File); i > 0 {
					b.WriteString(";")
				}
			}
			for _, a := range s.Attributes {
				fmt.Fprintf(&b, " %s=%v", strings.TrimPrefix(a.Key, "otelcol_profiles."), a.Value)
			}
			for _, point := range s.Points {
				fmt.Fprintf(&b, " @%d:%d", (point.Timestamp-p.Time)/1000, point.Value)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestSamplesAreRead(t *testing.T) {
	const text = `# ========
# captured on    : Thu Nov  5 10:00:00 2026
# ========
#
my prog  11/12 [003] 100.000000:    1001001 cpu-clock:ppp: 
	            1160 inner(int, char)+0x7 (inlined)
	            1160 middle (inlined)
	            1160 burn(int)+0x27 (/usr/bin/my prog (deleted))
	            119b [unknown] (/usr/lib/libc.so.6)
	    7f0000000000 Lcom/example/Main;::run+0x3 (/tmp/perf-11.map)
	ffffffff81054430 do_syscall_64+0x71 ([kernel.kallsyms])
	ffffffffc0054430 [unknown] ([nf_tables])

         swapper     0 [000] 100.000100:          1 cycles:  ffffffff8105443a native_write_msr_safe+0xa ([kernel.kallsyms])
perf 5 100.000200: cycles:u: 
	            1160 main+0x7 (/usr/bin/perf)
  main.c:12
	            1180 [unknown] ([unknown])
  ??:0

a:b 7/7 100.000300:     syscalls:sys_enter_read: fd: 0x00000003, buf: 0x7ffc, count: 0x100
`
	pd, report := unmarshal(t, perfscripttranslator.Unmarshaler{}, text)
	assert.Equal(t, `cpu samples/count
  [nf_tables];do_syscall_64@[kernel.kallsyms]`, strings.Replace(strings.SplitN(show(t, pd), ";Lcom", 2)[0], "ffffffffc0054430@", "", 1))
	assert.Equal(t, `cpu samples/count
  ffffffffc0054430@[nf_tables];do_syscall_64@[kernel.kallsyms];Lcom/example/Main;::run@/tmp/perf-11.map;119b@/usr/lib/libc.so.6;burn(int)<middle<inner(int, char)@/usr/bin/my prog (deleted) cpu.logical_number=3 process.pid=11 thread.id=12 thread.name=my prog @0:1
cpu cpu/nanoseconds
  ffffffffc0054430@[nf_tables];do_syscall_64@[kernel.kallsyms];Lcom/example/Main;::run@/tmp/perf-11.map;119b@/usr/lib/libc.so.6;burn(int)<middle<inner(int, char)@/usr/bin/my prog (deleted) cpu.logical_number=3 process.pid=11 thread.id=12 thread.name=my prog @0:1001001
cycles samples/count
  native_write_msr_safe@[kernel.kallsyms] cpu.logical_number=0 thread.id=0 thread.name=swapper @100:1
cycles cycles/count
  native_write_msr_safe@[kernel.kallsyms] cpu.logical_number=0 thread.id=0 thread.name=swapper @100:1
cycles samples/count
  1180@;main(main.c:12)@/usr/bin/perf thread.id=5 thread.name=perf @200:1
syscalls:sys_enter_read samples/count
   process.pid=7 thread.id=7 thread.name=a:b @300:1
`, show(t, pd))
	assert.Zero(t, report.OtherLines)
	types := map[string]any{}
	for _, f := range profiletest.Expand(t, pd)[0].Samples[0].Stack {
		types[f.Mapping.File] = expand.Value(f.Attributes, "profile.frame.type")
	}
	assert.Equal(t, map[string]any{
		"/usr/bin/my prog (deleted)": "native", "/usr/lib/libc.so.6": "native", "/tmp/perf-11.map": nil,
		"[kernel.kallsyms]": "kernel", "[nf_tables]": "kernel",
	}, types)
}

// Recordings of perf 6.1: both samples and sums are those of stackcollapse-perf.pl on the same text.
func TestStacksAreThoseOfStackcollapse(t *testing.T) {
	clock := testdata(t, "clock.txt")
	pd, report := unmarshal(t, perfscripttranslator.Unmarshaler{}, clock)
	want := collapse(clock, "cpu-clock")
	require.NotEmpty(t, want)
	assert.Equal(t, want, collapsed(t, pd, "cpu", "samples"))
	for key := range want {
		want[key] *= 5025125
	}
	assert.Equal(t, want, collapsed(t, pd, "cpu", "cpu"))
	assert.Zero(t, report.OtherLines)

	sched := testdata(t, "sched.txt")
	pd, report = unmarshal(t, perfscripttranslator.Unmarshaler{}, sched)
	assert.Equal(t, collapse(sched, "sched:sched_waking"), collapsed(t, pd, "sched:sched_waking", "samples"))
	assert.Zero(t, report.OtherLines)
}

func TestReferenceTimeSetsTheClock(t *testing.T) {
	u := perfscripttranslator.Unmarshaler{End: 5}
	pd, _ := unmarshal(t, u, testdata(t, "clock.txt"))
	start := time.Unix(0, int64(profiletest.Expand(t, pd)[0].Time)).UTC()
	assert.Equal(t, "2026-11-28 22:42:04.117914377", start.Format("2006-01-02 15:04:05.000000000"), "13042.275648 - 13042.085515623 s after the reference time")
}

func TestLastSampleIsAtTheEndOfATextWithoutReferenceTime(t *testing.T) {
	const text = "a 1 100.000000: cycles: \n\na 1 101.500000: cycles: \n\n"
	end := uint64(1_700_000_000e9)
	pd, _ := unmarshal(t, perfscripttranslator.Unmarshaler{End: end}, text)
	assert.Equal(t, end-1_500_000_000, profiletest.Expand(t, pd)[0].Time)
	assert.EqualValues(t, 1_500_000_001, profiletest.Expand(t, pd)[0].Duration)

	pd, _ = unmarshal(t, perfscripttranslator.Unmarshaler{End: 1_500_000_000e9}, "a 1 1700000000.000000001: cycles: \n\n")
	assert.Equal(t, uint64(1_700_000_000_000_000_001), profiletest.Expand(t, pd)[0].Time, "perf record -k CLOCK_REALTIME")
}

// A program burns, sleeps for 300 ms, and burns: the stall is one interval with the stack at which it began.
func TestStallOfARecordingIsAnInterval(t *testing.T) {
	pd, _ := unmarshal(t, perfscripttranslator.Unmarshaler{}, testdata(t, "sched.txt"))
	var stalls []string
	for _, p := range profiletest.Expand(t, pd) {
		for _, s := range p.Samples {
			for _, point := range s.Points {
				if p.Type == "off_cpu" && point.Value > 200e6 && expand.Text(s.Attributes, "thread.name") == "stall" {
					var names []string
					for _, f := range s.Stack {
						names = append(names, f.Lines[0].Function)
					}
					stalls = append(stalls, fmt.Sprint(point.Value, expand.Text(s.Attributes, timing.StateAttribute), expand.Text(s.Attributes, attrkey.ThreadState), names))
				}
			}
		}
	}
	require.Len(t, stalls, 1)
	assert.Contains(t, stalls[0], "300083000blockedS[")
	assert.Contains(t, stalls[0], "do_nanosleep")
	assert.Contains(t, stalls[0], " main ")
}

const switches = `a 10 [000] 1.000000: sched:sched_switch: prev_comm=a b prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=c next_pid=20 next_prio=120
	    10 wait+0x1 (/bin/a)

c 20 [000] 1.000100: sched:sched_waking: comm=a b pid=10 prio=120 target_cpu=000

c 20/20 [000] 1.000150: sched:sched_switch: c:20 [120] R+ ==> a b:10 [120]

a 10 [000] 1.000170: sched:sched_switch: prev_comm=a b prev_pid=10 prev_prio=120 prev_state=D|K ==> next_comm=swapper/0 next_pid=0 next_prio=120

swapper 0 [000] 1.000300: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a b next_pid=10 next_prio=120

a 10 [000] 1.000400: sched:sched_switch: prev_comm=a b prev_pid=10 prev_prio=120 prev_state=X ==> next_comm=c next_pid=20 next_prio=120

c 20 [000] 1.000500: cycles: 

`

func TestPairsOfSwitchesAreTimeOffTheCPU(t *testing.T) {
	pd, report := unmarshal(t, perfscripttranslator.Unmarshaler{}, switches)
	assert.Equal(t, `off_cpu events/count
   reason=preempted state=runnable thread.state=R+ timestamp_marks=start process.pid=20 thread.id=20 thread.name=c @150:1
   state=blocked thread.state=D|K timestamp_marks=start thread.id=10 thread.name=a b @170:1
  wait@/bin/a reason=woken state=runnable thread.state=S timestamp_marks=start thread.id=10 thread.name=a b @100:0
  wait@/bin/a state=blocked thread.state=S timestamp_marks=start thread.id=10 thread.name=a b @0:1
`, sorted(t, pd, "off_cpu events"))
	assert.Equal(t, `off_cpu off_cpu/nanoseconds
   reason=preempted state=runnable thread.state=R+ timestamp_marks=start process.pid=20 thread.id=20 thread.name=c @150:250000
   state=blocked thread.state=D|K timestamp_marks=start thread.id=10 thread.name=a b @170:130000
  wait@/bin/a reason=woken state=runnable thread.state=S timestamp_marks=start thread.id=10 thread.name=a b @100:50000
  wait@/bin/a state=blocked thread.state=S timestamp_marks=start thread.id=10 thread.name=a b @0:100000
`, sorted(t, pd, "off_cpu off_cpu"))
	assert.Zero(t, report.Unpaired)
	assert.Equal(t, offCPU(t, strings.Replace(switches, "c:20 [120] R+ ==> a b:10 [120]",
		"prev_comm=c prev_pid=20 prev_prio=120 prev_state=R+ ==> next_comm=a b next_pid=10 next_prio=120", 1)), offCPUOf(t, pd))
}

// sorted returns the lines of show of one Profile.
func sorted(t testing.TB, pd pprofile.Profiles, start string) string {
	t.Helper()
	_, rest, found := strings.Cut("\n"+show(t, pd), "\n"+start)
	require.True(t, found)
	lines := strings.SplitAfter(start+rest, "\n")
	end := 1
	for end < len(lines) && strings.HasPrefix(lines[end], " ") {
		end++
	}
	of := lines[1:end]
	for i := range of {
		for j := i + 1; j < len(of); j++ {
			if of[j] < of[i] {
				of[i], of[j] = of[j], of[i]
			}
		}
	}
	return lines[0] + strings.Join(of, "")
}

func TestDelaysCountUnlessSwitchesTellThem(t *testing.T) {
	const stats = `a 1 1.001000: sched:sched_stat_sleep: comm=b c pid=2 delay=300000 [ns]
	    10 waker+0x1 (/bin/a)

a 1 1.002000: sched:sched_stat_iowait: comm=b c pid=2 delay=400000 [ns]

a 1 1.002000: sched:sched_stat_blocked: comm=b c pid=2 delay=400000 [ns]

b c 2 1.003000: sched:sched_stat_wait: comm=b c pid=2 delay=5 [ns]
	    10 own+0x1 (/bin/a)

`
	pd, _ := unmarshal(t, perfscripttranslator.Unmarshaler{}, stats)
	assert.Equal(t, `off_cpu off_cpu/nanoseconds
   reason=file state=blocked thread.state=D timestamp_marks=end thread.id=2 thread.name=b c @1000:400000
   state=blocked thread.state=S timestamp_marks=end thread.id=2 thread.name=b c @0:300000
  own@/bin/a state=runnable timestamp_marks=end thread.id=2 thread.name=b c @2000:5
`, sorted(t, pd, "off_cpu off_cpu"))
	pd, _ = unmarshal(t, perfscripttranslator.Unmarshaler{}, switches+stats)
	assert.NotContains(t, show(t, pd), "timestamp_marks=end")
}

// random returns samples and switches of a few threads on two CPUs. No two switches are at the same time.
func random(r *rand.Rand, n int) string {
	var b strings.Builder
	running, now := [2]int{0, 0}, 5_000_000+r.IntN(1000)
	for range n {
		now += 1 + r.IntN(20)
		cpu := r.IntN(2)
		tid := running[cpu]
		fmt.Fprintf(&b, "thread %d %5d/%-5d [%03d] %d.%06d: ", tid, 1+tid%2, tid, cpu, now/1_000_000, now%1_000_000)
		switch r.IntN(4) {
		case 0:
			fmt.Fprintf(&b, "%10d cpu-clock: \n", 1000)
		case 1:
			woken := 1 + r.IntN(5)
			fmt.Fprintf(&b, "sched:sched_waking: comm=thread %d pid=%d prio=120 target_cpu=000\n", woken, woken)
		default:
			next := r.IntN(6)
			if next == running[1-cpu] || next == tid {
				next = 0
			}
			state := []string{"S", "D", "R", "R+", "I", "X"}[r.IntN(6)]
			fmt.Fprintf(&b, "sched:sched_switch: prev_comm=thread %d prev_pid=%d prev_prio=120 prev_state=%s ==> next_comm=thread %d next_pid=%d next_prio=120\n", tid, tid, state, next, next)
			running[cpu] = next
		}
		for range r.IntN(4) {
			f := r.IntN(5)
			fmt.Fprintf(&b, "\t%16x f%d+0x%x (/bin/p%d)\n", 4096*f, f, f, f%2)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The parts of random texts, of any size, have each microsecond of each thread off the CPU and each sample once, as a
// walk through the text finds them.
func TestPartsHaveWhatAWalkThroughTheTextFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for n := range 60 {
		text := random(r, 1+r.IntN(120))
		wantOff, wantStacks := offCPU(t, text), collapse(text, "cpu-clock")
		whole, _ := unmarshal(t, perfscripttranslator.Unmarshaler{}, text)
		require.Equal(t, wantOff, offCPUOf(t, whole), text)
		require.Equal(t, wantStacks, collapsed(t, whole, "cpu", "samples"))

		u := perfscripttranslator.Unmarshaler{PartSize: int64(1 + r.IntN(len(text)))}
		reader := u.NewReader(strings.NewReader(text), int64(len(text)))
		var parts []pprofile.Profiles
		stacks, events := map[string]int64{}, int64(0)
		for {
			pd, _, err := reader.Next(math.MaxInt64, nil)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if n%2 == 0 { // the next consumer had no memory
				reader.Back()
				again, _, err := reader.Next(math.MaxInt64, nil)
				require.NoError(t, err)
				require.Equal(t, profiletest.Expand(t, pd), profiletest.Expand(t, again))
			}
			requireInside(t, pd)
			parts = append(parts, pd)
			for key, count := range collapsed(t, pd, "cpu", "samples") {
				stacks[key] += count
			}
			for _, count := range collapsed(t, pd, "off_cpu", "events") {
				events += count
			}
		}
		require.Equal(t, wantOff, offCPUOf(t, parts...), "%d parts of\n%s", len(parts), text)
		require.Equal(t, wantStacks, stacks)
		for _, count := range collapsed(t, whole, "off_cpu", "events") {
			events -= count
		}
		require.Zero(t, events)
	}
}

func TestErrorsSayWhatIsExpected(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "perf script: the text has no sample, which starts with a line such as `comm pid/tid [cpu] seconds.fraction: period event:`",
		"# ========\n":              "perf script: the text has no sample, which starts with a line such as `comm pid/tid [cpu] seconds.fraction: period event:`",
		"main;encode 42\n":          "perf script: the text has no sample, which starts with a line such as `comm pid/tid [cpu] seconds.fraction: period event:`: line 1 is \"main;encode 42\"",
		"# a\n\na 1 x.5: cycles:\n": "perf script: the text has no sample, which starts with a line such as `comm pid/tid [cpu] seconds.fraction: period event:`: line 3 is \"a 1 x.5: cycles:\"",
	} {
		_, err := (&perfscripttranslator.Unmarshaler{}).UnmarshalProfiles([]byte(text))
		assert.EqualError(t, err, want)
	}
	var many strings.Builder
	for i := range 4097 { // the last one ends with the text
		fmt.Fprintf(&many, "a 1 1.000000: e%d: \n", i)
	}
	_, err := (&perfscripttranslator.Unmarshaler{}).UnmarshalProfiles([]byte(many.String()))
	assert.EqualError(t, err, "perf script: different events: more than the limit of 4096")
}

func TestScriptsAreRecognized(t *testing.T) {
	for text, want := range map[string]bool{
		testdata(t, "clock.txt"): true, testdata(t, "sched.txt"): true, switches: true,
		"# ========\n# captured on    : Thu\n":                              true,
		"my prog  26019/26020 52414.329088: cpu-clock:\n":                   true,
		"swapper 0 [000] 158665.570607: ffffffff8105443a write_msr ([k])\n": true,
		"main;encode 42\n":                              false,
		"# mode: wall\nmain;encode 42\n":                false,
		"goroutine 1 [running]:\nmain.main()\n":         false,
		"\n\x0a\x04\x08\x01\x10\x02":                    false,
		"a 1 2.5: cycles:\n":                            false,
		"perf 1 100.000000: PERF_RECORD_COMM: perf:1\n": false,
		"": false,
	} {
		assert.Equal(t, want, perfscripttranslator.IsScript([]byte(text)), text[:min(len(text), 60)])
	}
}

// Memory is asked for before it is taken, whatever the text: many frames, names, threads, events or samples.
func TestMemoryIsBounded_J2(t *testing.T) {
	const size = 4 << 20
	texts := map[string]func(b *strings.Builder, i int){
		"samples of one stack": func(b *strings.Builder, i int) { fmt.Fprintf(b, "a 1 %d.000000: e:\n", i) },
		"stacks":               func(b *strings.Builder, i int) { fmt.Fprintf(b, "a 1 1.000000: e:\n\t%x f%d\n", i, i) },
		"threads":              func(b *strings.Builder, i int) { fmt.Fprintf(b, "%d %d 1.000000: e:\n", i, i) },
		"threads off the CPU": func(b *strings.Builder, i int) {
			fmt.Fprintf(b, "a %d 1.%06d: sched:sched_switch: a:%d [1] S ==> s:0 [1]\n\t1 %0200d\n", i+1, i, i+1, i)
		},
	}
	for name, add := range texts {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for i := 0; b.Len() < size; i++ {
				add(&b, i)
			}
			asked := int64(0)
			pd, report, err := (&perfscripttranslator.Unmarshaler{}).UnmarshalWithin([]byte(b.String()), 1, func(needed int64) (int64, error) {
				asked = needed
				return needed, nil
			})
			require.NoError(t, err)
			assert.Positive(t, pd.SampleCount())
			assert.LessOrEqual(t, int64(report.Bytes), asked)
			_, _, err = (&perfscripttranslator.Unmarshaler{}).UnmarshalWithin([]byte(b.String()), asked/2, nil)
			_, isLimit := errors.AsType[*perfscripttranslator.LimitError](err)
			assert.True(t, isLimit)
		})
	}
}

// 10^5 timestamps in one sample, which go back and forth over 290 years, and a line of a megabyte.
func TestHostileTimesAreInsideTheirProfile_J7(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	const samples = 300_000
	for i := range samples {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&b, "a 1 %d.000000: e:\n", r.Int64N(9_223_372_035))
		case 1:
			fmt.Fprintf(&b, "a 1 %d.000000: sched:sched_switch: a:1 [1] S ==> b:2 [1]\n", r.Int64N(9_223_372_035))
		default:
			fmt.Fprintf(&b, "a 1 %d.000000: sched:sched_switch: b:2 [1] S ==> a:1 [1]\n", r.Int64N(9_223_372_035))
		}
	}
	fmt.Fprintf(&b, "a 1 1.000000: x:y: %s\n", strings.Repeat("x", 1<<20))
	began := time.Now()
	pd, report := unmarshal(t, perfscripttranslator.Unmarshaler{}, b.String())
	assert.Less(t, time.Since(began), 30*time.Second)
	assert.Positive(t, report.Unpaired)
	assert.EqualValues(t, (samples+2)/3, collapsed(t, pd, "e", "samples")["a"])
	assert.EqualValues(t, 1, collapsed(t, pd, "x:y", "samples")["a"])
}

// perf itself records a program that sleeps.
func TestSleepThatPerfRecords(t *testing.T) {
	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip(err)
	}
	data := filepath.Join(t.TempDir(), "perf.data")
	out, err := exec.Command("perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "sched:sched_switch", "-c", "1", "-a", "-g", "-o", data, "--", "sleep", "0.3").CombinedOutput()
	if err != nil {
		t.Skipf("perf cannot record here: %s", out)
	}
	text, err := exec.Command("perf", "script", "--header", "-F", "+pid", "-i", data).Output()
	require.NoError(t, err)
	require.True(t, perfscripttranslator.IsScript(text))
	if !bytes.Contains(text, []byte("sched_switch: ")) {
		t.Skip("perf records no switches here")
	}
	pd, report := unmarshal(t, perfscripttranslator.Unmarshaler{}, string(text))
	assert.Zero(t, report.OtherLines)
	longest := int64(0)
	for _, p := range profiletest.Expand(t, pd) {
		for _, s := range p.Samples {
			for _, point := range s.Points {
				if p.Type == "off_cpu" && expand.Text(s.Attributes, "thread.name") == "sleep" {
					longest = max(longest, point.Value)
					assert.InDelta(t, float64(time.Now().UnixNano()), float64(point.Timestamp), float64(time.Minute))
				}
			}
		}
	}
	if strings.Contains(string(text), "prev_state=S") {
		assert.Greater(t, longest, int64(290*time.Millisecond))
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(switches))
	f.Add([]byte(testdata(f, "clock.txt")))
	f.Add([]byte("a 1 1.000000: sched:sched_stat_sleep: comm=b pid=2 delay=3 [ns]\n\t1 f (inlined)\n  a:1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		u := perfscripttranslator.Unmarshaler{PartSize: 100}
		reader := u.NewReader(bytes.NewReader(text), int64(len(text)))
		for {
			pd, _, err := reader.Next(16<<20, nil)
			if err != nil {
				return
			}
			profiletest.RequireConforms(t, pd)
			requireInside(t, pd)
		}
	})
}
