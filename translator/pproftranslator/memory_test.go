package pproftranslator

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func live() (int64, int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.TotalAlloc)
}

func distinct(n int) []byte {
	m := base().strings("cpu2")
	inner := make(message, 0, 2000)
	for i := range 1000 {
		m = m.bytes(profileLocation, inner.varint(1, uint64(i+100)).varint(3, uint64(0x1000+16*i)))
	}
	for i := range n {
		m = m.bytes(profileSample, inner.packed(1, uint64(100+i%1000), uint64(100+i/1000), uint64(100+i%7)).packed(2, uint64(i)))
	}
	return m
}

func TestZZ(t *testing.T) {
	debug.SetGCPercent(100)
	m := map[string][]byte{}
	var names []string
	for _, f := range profiletest.Corpus(t) {
		data, _ := Decompress(f.Data, 1<<30)
		m[f.Name] = data
		names = append(names, f.Name)
	}
	for _, n := range []int{5000, 20000, 200000} {
		k := fmt.Sprint("distinct", n)
		m[k] = distinct(n)
		names = append(names, k)
		k = fmt.Sprint("labels", n)
		m[k] = ofLabels(n, func(i int) string { return fmt.Sprint("request ", i) })
		names = append(names, k)
	}
	for _, k := range names {
		data := m[k]
		h0, t0 := live()
		d := &decoder{tables: dictionary.New(0), limits: Limits{}.withDefaults()}
		d.reset(data)
		var reserved int64
		d.memory.reserve = func(b int64) error { reserved = max(b, reserved); return nil }
		pd, rep, err := d.translate()
		if err != nil {
			t.Log(k, err)
			continue
		}
		h1, t1 := live()
		ret := d.retained()
		runtime.KeepAlive(d)
		d = nil
		h2, _ := live()
		n := float64(len(data))
		t.Logf("%-20s %9d samples %7d  reserved/live %.2f report/pd %.2f total %.2f live+decoder %.2f pd %.2f report %.2f retained %.2f total %.2f outputsize", k, len(data), pd.SampleCount(), float64(reserved)/float64(h1-h0), float64(rep.Bytes)/float64(h2-h0), float64(reserved)/n, float64(h1-h0)/n, float64(h2-h0)/n, float64(rep.Bytes)/n, float64(ret)/n, float64(t1-t0)/n)
		runtime.KeepAlive(pd)
		runtime.KeepAlive(data)
	}
}
