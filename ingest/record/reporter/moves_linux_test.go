package reporter

import (
	"encoding/binary"
	"testing"

	"symbolize/ingest/record/sys"
)

// TestParseMove: a sample has the process, the time and the addresses; one that is cut is an error.
func TestParseMove(t *testing.T) {
	sample := func(from, start, length uint64) []byte {
		o := binary.NativeEndian
		b := make([]byte, sys.RecordHeader+8)
		b = o.AppendUint32(o.AppendUint32(b, 50), 51)
		b = o.AppendUint64(o.AppendUint64(b, 700), 1)
		b = o.AppendUint32(b, 28)
		return o.AppendUint64(o.AppendUint64(o.AppendUint64(b, from), start), length)
	}
	for _, c := range []struct {
		name string
		rec  []byte
		want Move
	}{
		{name: "moved", rec: append(sample(0x1000, 0x5000, 0x2000), 0, 0, 0, 0),
			want: Move{PID: 50, Time: 700, From: 0x1000, Start: 0x5000, End: 0x7000}},
		{name: "to the end", rec: sample(0x1000, 1<<63, 1<<63),
			want: Move{PID: 50, Time: 700, From: 0x1000, Start: 1 << 63, End: 1<<64 - 1}},
	} {
		if got, err := ParseMove(c.rec); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	whole := sample(1, 2, 3)
	for n := range whole {
		if m, err := ParseMove(whole[:n:n]); err == nil {
			t.Errorf("%d bytes: %+v", n, m)
		}
	}
}
