package rawdump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"symbolize/ingest/decode"
)

func testHeader() Header {
	return Header{MapID: 77, Type: 5, Flags: 0x20, KeySize: 4, ValueSize: 12, Depth: 3,
		MaxEntries: 1000, CPUs: 2, BTFID: 8, KeyType: 9, ValueType: 10, BigEndian: true, Entries: 3,
		Time: 1 << 40, Name: "counts", Lost: map[string]uint64{"-17": 4, "-14": 1, "map full": 9}}
}

// testPairs returns pairs of distinct bytes.
func testPairs(h *Header, n int) [][2][]byte {
	next := byte(0)
	fill := func(size uint64) []byte {
		b := make([]byte, size)
		for i := range b {
			next++
			b[i] = next
		}
		return b
	}
	var out [][2][]byte
	for range n {
		out = append(out, [2][]byte{fill(uint64(h.KeySize)), fill(h.Stride())})
	}
	return out
}

func openDump(data []byte) (*Reader, error) {
	return Open("dump", bytes.NewReader(data), int64(len(data)))
}

// readDump returns all pairs.
func readDump(d *Reader) (pairs [][2][]byte) {
	for {
		k, v, ok := d.Next()
		if !ok {
			return pairs
		}
		pairs = append(pairs, [2][]byte{bytes.Clone(k), bytes.Clone(v)})
	}
}

func TestDumpRoundTrip(t *testing.T) {
	plain := Header{Type: 7, KeySize: 4, ValueSize: 127 * 32, Name: "stacks of all", Entries: 300}
	for _, h := range []Header{testHeader(), plain, {KeySize: 1, ValueSize: 1, CPUs: 1}, {}} {
		pairs := testPairs(&h, int(h.Entries))
		data, err := Append([]byte("before")[:0], h, pairs)
		if err != nil {
			t.Fatal(err)
		}
		if !Is(data) {
			t.Error("not recognised")
		}
		var streamed bytes.Buffer
		w, err := NewWriter(&streamed, &h)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pairs {
			if err := w.Add(p[0], p[1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || !bytes.Equal(streamed.Bytes(), data) {
			t.Errorf("streamed %d bytes, at once %d, %v", streamed.Len(), len(data), err)
		}
		d, err := openDump(data)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(d.Header, h) {
			t.Errorf("header %+v, want %+v", d.Header, h)
		}
		if got := readDump(d); !reflect.DeepEqual(got, pairs) || d.Err() != nil {
			t.Errorf("%d pairs of %d, %v", len(got), len(pairs), d.Err())
		}
	}
}

// TestDumpBytes compares a dump with bytes written by hand from the package comment.
func TestDumpBytes(t *testing.T) {
	h := Header{MapID: 2, Type: 3, Flags: 4, KeySize: 5, ValueSize: 6, Depth: 7, MaxEntries: 8,
		CPUs: 2, BTFID: 10, KeyType: 11, ValueType: 12, Time: 13, Name: "map",
		Lost: map[string]uint64{"b": 15, "a": 14}}
	got, err := Append(nil, h, [][2][]byte{{[]byte("kkkkk"), []byte("AAAAAA..BBBBBB..")}})
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	want := []byte("BPFDUMP\n")
	for _, v := range []uint32{1, 128, 2, 3, 4, 5, 6, 7, 8, 2, 10, 11, 12, 1} {
		want = le.AppendUint32(want, v)
	}
	want = le.AppendUint64(le.AppendUint64(want, 1), 13)
	want = le.AppendUint32(le.AppendUint32(want, 3), 2)
	want = append(want, "map\x00\x00\x00\x00\x00"...)
	want = append(le.AppendUint32(le.AppendUint64(want, 14), 1), "a\x00\x00\x00"...)
	want = append(le.AppendUint32(le.AppendUint64(want, 15), 1), "b\x00\x00\x00"...)
	want = append(want, "kkkkkAAAAAA..BBBBBB.."...)
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	value := got[len(got)-16:]
	if a, b := h.CPUValue(value, 0), h.CPUValue(value, 1); string(a) != "AAAAAA" ||
		string(b) != "BBBBBB" {
		t.Errorf("CPU values %q and %q", a, b)
	}
}

func TestDumpWriterRefuses(t *testing.T) {
	h := Header{KeySize: 4, ValueSize: 4, Entries: 2}
	if _, err := Append(nil, h, [][2][]byte{{{1}, {2}}}); !errors.Is(err, ErrPair) {
		t.Errorf("short pair: %v", err)
	}
	w, err := NewWriter(io.Discard, &h)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(make([]byte, 4), make([]byte, 5)); !errors.Is(err, ErrPair) {
		t.Errorf("long value: %v", err)
	}
	if err := w.Add(make([]byte, 4), make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "1 pairs written") {
		t.Errorf("one pair of two: %v", err)
	}
}

// TestDumpUnknownEntries streams an unknown number of pairs, and cuts them.
func TestDumpUnknownEntries(t *testing.T) {
	h := Header{KeySize: 4, ValueSize: 8, Entries: UnknownEntries}
	var b bytes.Buffer
	w, err := NewWriter(&b, &h)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range testPairs(&h, 5) {
		if err := w.Add(p[0], p[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for cut, want := range map[int]int{0: 5, 3: 4, 12: 4} {
		d, err := openDump(b.Bytes()[:b.Len()-cut])
		if err != nil {
			t.Fatal(err)
		}
		if got := readDump(d); len(got) != want || (d.Err() != nil) != (cut%12 != 0) {
			t.Errorf("cut by %d: %d pairs, %v", cut, len(got), d.Err())
		}
	}
}

// TestDumpTruncated opens every prefix.
func TestDumpTruncated(t *testing.T) {
	h := testHeader()
	pairs := testPairs(&h, 3)
	data, err := Append(nil, h, pairs)
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		d, err := openDump(data[:n])
		if err != nil {
			continue
		}
		got := readDump(d)
		if len(got) >= len(pairs) || d.Err() == nil || !reflect.DeepEqual(got, append([][2][]byte(nil),
			pairs[:len(got)]...)) && len(got) > 0 {
			t.Fatalf("%d bytes: %d pairs, %v", n, len(got), d.Err())
		}
	}
}

// TestDumpHostile gives lengths that no file can keep.
func TestDumpHostile(t *testing.T) {
	h := Header{KeySize: 4, ValueSize: 8, Entries: 1, Name: "n", Lost: map[string]uint64{"a": 1}}
	whole, err := Append(nil, h, testPairs(&h, 1))
	if err != nil {
		t.Fatal(err)
	}
	const huge = math.MaxUint32
	for _, tt := range []struct {
		name   string
		at     int
		value  uint32
		reason string
	}{
		{name: "version", at: 8, value: 3, reason: "version 3"}, {name: "header", at: 12,
			value: huge, reason: "size is 4294967295"},
		{name: "header too small", at: 12, value: 80, reason: "size is 80"}, {name: "key", at: 28,
			value: huge, reason: "is more than"},
		{name: "value", at: 32, value: huge, reason: "is more than"}, {name: "CPUs", at: 44,
			value: huge, reason: "CPUs are more than"},
		{name: "order", at: 60, value: 3, reason: "byte order 3"}, {name: "name", at: 80,
			value: huge, reason: "bytes wanted"},
		{name: "lost counts", at: 84, value: huge, reason: "wanted"}, {name: "cause", at: 104,
			value: huge, reason: "bytes wanted"},
	} {
		data := bytes.Clone(whole)
		binary.LittleEndian.PutUint32(data[tt.at:], tt.value)
		_, err := openDump(data)
		var where *decode.Error
		if !errors.As(err, &where) || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	data := bytes.Clone(whole)
	binary.LittleEndian.PutUint64(data[64:], 1<<60)
	d, err := openDump(data)
	if err != nil || len(readDump(d)) != 1 || d.Err() == nil {
		t.Errorf("entries: %v, %v", err, d.Err())
	}
	for _, data := range [][]byte{nil, []byte("BPFDUMP"), make([]byte, 200)} {
		if _, err := openDump(data); !errors.Is(err, ErrNotDump) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
	empty := Header{Entries: 7}
	data = appendHeader(nil, &empty)
	if _, err := openDump(data); err == nil || !strings.Contains(err.Error(), "without a size") {
		t.Errorf("pairs of no size: %v", err)
	}
}

// TestDumpNewerHeader steps over fields that a later version adds.
func TestDumpNewerHeader(t *testing.T) {
	h := Header{KeySize: 1, ValueSize: 1, Entries: 1}
	data := appendHeader(nil, &h)
	binary.LittleEndian.PutUint32(data[12:], uint32(len(data)+8))
	data = append(data, "newer...kv"...)
	d, err := openDump(data)
	if err != nil {
		t.Fatal(err)
	}
	if k, v, ok := d.Next(); !ok || string(k) != "k" || string(v) != "v" {
		t.Errorf("%q %q %v", k, v, ok)
	}
}

// TestDumpReadFails has the file become shorter while it is read.
func TestDumpReadFails(t *testing.T) {
	h := Header{KeySize: 4, ValueSize: 4, Entries: 2}
	data, err := Append(nil, h, testPairs(&h, 2))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open("dump", bytes.NewReader(data[:len(data)-1]), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if got := readDump(d); len(got) != 0 || d.Err() == nil {
		t.Errorf("%d pairs, %v", len(got), d.Err())
	}
}

func FuzzDump(f *testing.F) {
	h := testHeader()
	data, err := Append(nil, h, testPairs(&h, 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:100])
	h.Entries = UnknownEntries
	f.Add(append(appendHeader(nil, &h), "pairs of unknown number"...))
	for _, h := range packedHeaders() {
		if h.Entries > 100 {
			continue
		}
		if data, err = Append(nil, h, testPairs(&h, int(h.Entries))); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := openDump(data)
		if err != nil {
			return
		}
		total, trimmed := 0, d.Header.Packing == Trimmed
		for {
			k, v, ok := d.Next()
			if !ok {
				break
			}
			if trimmed {
				v = bytes.TrimRight(v, "\x00")
			}
			total += len(k) + len(v)
			if trimmed {
				continue
			}
			for i := range d.Header.CPUs {
				d.Header.CPUValue(v, int(i))
			}
		}
		if total > len(data) {
			t.Errorf("%d bytes of pairs in %d", total, len(data))
		}
	})
}

func BenchmarkDump(b *testing.B) {
	h := Header{KeySize: 4, ValueSize: 127 * 32, Entries: 1000}
	data, err := Append(nil, h, testPairs(&h, 1000))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		d, err := openDump(data)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, _, ok := d.Next(); ok; _, _, ok = d.Next() {
			n++
		}
		if n != 1000 {
			b.Fatal(fmt.Sprint(n, d.Err()))
		}
	}
}
