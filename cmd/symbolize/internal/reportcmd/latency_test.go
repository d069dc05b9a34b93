package reportcmd

import (
	"math"
	"testing"

	"symbolize/ingest/input"
)

// TestLatencyColumns: samples at any times, as damaged files have, give a bounded number of columns.
func TestLatencyColumns(t *testing.T) {
	l := latencies{columns: make(map[uint64][]uint64), width: 1e6}
	for _, time := range []uint64{5e6, 6e6, 1 << 60, math.MaxUint64 - 1, math.MaxUint64} {
		l.add(&input.ReplaySample{Time: time, Period: time / 1e6})
	}
	m := l.heatMap("")
	sum := uint64(0)
	for _, c := range m.Columns {
		for _, n := range c.Counts {
			sum += n
		}
	}
	if sum != 4 || l.sums != 1 || len(m.Columns) < 2 || len(m.Columns) > 4*latencyColumns+1 {
		t.Errorf("%d samples in %d columns, %d sums", sum, len(m.Columns), l.sums)
	}
}
