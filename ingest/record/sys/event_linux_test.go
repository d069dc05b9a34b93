package sys

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/perfdata"
)

// testRing is a ring with something in it from tail to head.
func testRing(data []byte, tail, head uint64) *Ring {
	return &Ring{data: data, page: &unix.PerfEventMmapPage{Data_tail: tail, Data_head: head}}
}

// TestRing reads records that wrap around the end, and stops at invalid ones.
func TestRing(t *testing.T) {
	data := make([]byte, 64)
	r := testRing(data, 48, 48+32)
	var rec [32]byte
	binary.NativeEndian.PutUint16(rec[6:], 32)
	rec[31] = 7
	copy(data[48:], rec[:16])
	copy(data, rec[16:])
	var got [][]byte
	visit := func(b []byte) { got = append(got, bytes.Clone(b)) }
	if !r.Drain(visit) || len(got) != 1 || !bytes.Equal(got[0], rec[:]) || r.page.Data_tail != 80 {
		t.Errorf("%x, tail %d", got, r.page.Data_tail)
	}
	clear(data)
	r.page.Data_head += 16
	if !r.Drain(visit) || len(got) != 1 || r.page.Data_tail != r.page.Data_head {
		t.Error("a record of size 0 was handed out, or the ring stands still")
	}
	if r.Drain(visit) {
		t.Error("an empty ring")
	}
}

// FuzzRing drains rings with any content: each returned record is inside the ring, which is empty
// afterwards.
func FuzzRing(f *testing.F) {
	f.Add(bytes.Repeat([]byte{3, 0, 0, 0, 0, 0, 24, 0}, 6), uint16(0))
	f.Add(bytes.Repeat([]byte{9, 0, 0, 0, 0, 0, 48, 0}, 12), uint16(440))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 7, 0}, uint16(8))
	f.Fuzz(func(t *testing.T, content []byte, tail uint16) {
		const size = 512
		data := make([]byte, size)
		n := min(len(content), size) &^ 7
		at := int(tail) &^ 7 % size
		copy(data[at:], content[:min(n, size-at)])
		if n > size-at {
			copy(data, content[size-at:n])
		}
		r := testRing(data, uint64(at), uint64(at+n))
		total := 0
		r.Drain(func(rec []byte) {
			if len(rec) < RecordHeader || len(rec) != int(binary.NativeEndian.Uint16(rec[6:])) {
				t.Fatalf("record of %d bytes", len(rec))
			}
			total += len(rec)
		})
		if total > n || r.page.Data_tail != r.page.Data_head {
			t.Errorf("%d bytes of %d; tail %d, head %d", total, n, r.page.Data_tail, r.page.Data_head)
		}
	})
}

// TestCommTime reads the time of COMM records only.
func TestCommTime(t *testing.T) {
	rec := binary.NativeEndian.AppendUint64([]byte{0, 0, 0, 0, 0, 0, 56, 0, 1, 0, 0, 0, 1, 0, 0, 0, 'x',
		0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0}, 99)
	rec = append(rec, make([]byte, 16)...)
	binary.NativeEndian.PutUint32(rec, uint32(perfdata.TypeComm))
	if got := commTime(rec); got != 99 {
		t.Errorf("time %d", got)
	}
	for n := RecordHeader; n < RecordHeader+24; n++ {
		if got := commTime(rec[:n]); got != 0 {
			t.Errorf("%d bytes: time %d", n, got)
		}
	}
	binary.NativeEndian.PutUint32(rec, uint32(perfdata.TypeSample))
	if got := commTime(rec); got != 0 {
		t.Errorf("time %d of a sample", got)
	}
}

// TestLiveClocks: the clock since boot is not behind the one that stops during suspend, and no clock
// goes back.
func TestLiveClocks(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: reads this host's clocks: runs with SYMBOLIZE_LIVE=1 (make live)")
	}
	a, width := SystemClocks()
	b, _ := SystemClocks()
	if a.Monotonic == 0 || a.Realtime == 0 || a.Boottime < a.Monotonic-width || b.Monotonic < a.Monotonic ||
		b.Boottime < a.Boottime {
		t.Errorf("%+v, then %+v, within %d", a, b, width)
	}
}

func TestMiddle(t *testing.T) {
	if got := middle(3, 9); got != 6 {
		t.Errorf("%d is in the middle of 3 and 9", got)
	}
}
