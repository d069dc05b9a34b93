package rawdump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// packedHeaders are headers of dumps in every packing, with pairs that fill more than a
// block of columns.
func packedHeaders() []Header {
	return []Header{
		{Type: 7, KeySize: 4, ValueSize: 96, Depth: 3, Name: "stacks", Entries: 5, Packing: Trimmed},
		{KeySize: 3, ValueSize: 5, CPUs: 2, Entries: 4, Packing: Trimmed},
		{KeySize: 0, ValueSize: 8, Entries: 3, Packing: Trimmed},
		{KeySize: 0, ValueSize: 8, Entries: UnknownEntries, Packing: Trimmed},
		{KeySize: 4, ValueSize: 8, Entries: 0, Packing: Columns},
		{KeySize: 5, ValueSize: 2, Entries: maxBlock + 3, Packing: Columns, Lost: map[string]uint64{
			"ring": 1}},
		{KeySize: 28, ValueSize: 16, Name: "counts", BigEndian: true, Entries: 7, Packing: Columns},
	}
}

func TestPackedRoundTrip(t *testing.T) {
	for _, h := range packedHeaders() {
		n := int(h.Entries)
		if h.Entries == UnknownEntries {
			n = 6
		}
		pairs := testPairs(&h, n)
		for i := range pairs { // values end with zeros, one of them is nothing else
			v := pairs[i][1]
			clear(v[len(v)-i%(len(v)+1):])
		}
		data, err := Append(nil, h, pairs)
		if err != nil {
			t.Fatal(err)
		}
		if h.Entries == UnknownEntries { // as it is streamed
			binary.LittleEndian.PutUint64(data[entriesAt:], UnknownEntries)
		}
		d, err := openDump(data)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(d.Header, h) {
			t.Errorf("header %+v, want %+v", d.Header, h)
		}
		if got := readDump(d); len(got) != n || n > 0 && !reflect.DeepEqual(got, pairs) || d.Err() != nil {
			t.Errorf("%+v: %d pairs of %d, %v", h, len(got), n, d.Err())
		}
	}
}

// TestPackedBytes compares packed pairs with bytes written by hand from the package
// comment.
func TestPackedBytes(t *testing.T) {
	for _, c := range []struct {
		packing Packing
		pairs   string
	}{
		{packing: Trimmed,
			pairs: "\x03\x00\x00\x00" + "ace" + "bdf" + "\x02\x00\x04" + strings.Repeat("\x00", 9) +
				"x\x01" + "wxyz"},
		{packing: Columns,
			pairs: "ace" + "bdf" + "x\x00w" + "\x01\x00x" + "\x00\x00y" + "\x00\x00z"},
	} {
		data, err := Append(nil, Header{KeySize: 2, ValueSize: 4, Packing: c.packing}, [][2][]byte{
			{[]byte("ab"), []byte("x\x01\x00\x00")}, {[]byte("cd"), make([]byte, 4)},
			{[]byte("ef"), []byte("wxyz")}})
		if err != nil {
			t.Fatal(err)
		}
		if v := binary.LittleEndian.Uint32(data[8:]); v != 2 {
			t.Errorf("version %d", v)
		}
		head := data[:binary.LittleEndian.Uint32(data[12:])]
		field := binary.LittleEndian.AppendUint64(nil, uint64(c.packing))
		if !bytes.HasSuffix(head, field) || len(head) != fixedSize+len(field) {
			t.Errorf("header %q", head)
		}
		if got := string(data[len(head):]); got != c.pairs {
			t.Errorf("packing %d:\n%q, want\n%q", c.packing, got, c.pairs)
		}
	}
}

// TestPackedRefused: packings that are none, and pairs that are too long for theirs.
func TestPackedRefused(t *testing.T) {
	for _, h := range []Header{
		{KeySize: 4, ValueSize: 4, Packing: 3},
		{KeySize: 4, ValueSize: MaxColumnPair, Packing: Columns},
		{KeySize: 4, ValueSize: MaxTrimmedPair, Packing: Trimmed},
	} {
		if _, err := Append(nil, h, nil); !errors.Is(err, errPacking) {
			t.Errorf("%+v written: %v", h, err)
		}
		data := appendHeader(nil, &h)
		if _, err := openDump(data); err == nil || !strings.Contains(err.Error(), errPacking.Error()) {
			t.Errorf("%+v read: %v", h, err)
		}
	}
}

// TestPackedTruncated: every prefix gives whole pairs and reports that something is missing.
func TestPackedTruncated(t *testing.T) {
	for _, h := range packedHeaders() {
		if h.Entries > 100 {
			continue
		}
		pairs := testPairs(&h, int(h.Entries))
		data, err := Append(nil, h, pairs)
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(data) {
			d, err := openDump(data[:n])
			if err != nil {
				continue
			}
			got := readDump(d)
			if d.Err() == nil || len(got) >= len(pairs) {
				t.Errorf("%+v: %d of %d bytes: %d pairs, %v", h, n, len(data), len(got), d.Err())
			}
			if len(got) > 0 && !reflect.DeepEqual(got, pairs[:len(got)]) {
				t.Errorf("%+v: other pairs", h)
			}
		}
	}
}

// TestTrimmedHostile: blocks with impossible fields.
func TestTrimmedHostile(t *testing.T) {
	block := func(n uint32, rest string) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, n), rest...)
	}
	h := Header{KeySize: 1, ValueSize: 4, Entries: 2, Packing: Trimmed}
	for _, c := range []struct {
		name   string
		body   []byte
		pairs  int
		reason string
	}{
		{name: "value too long", body: block(1, "k\x05\x00\x00\x00vvvvv"), pairs: 0,
			reason: "5 bytes of a value that has 4"},
		{name: "empty block", body: block(0, "k"), pairs: 0, reason: "a block of 0 pairs"},
		{name: "more than the dump has", body: block(3, "kkk"), pairs: 0,
			reason: "a block of 3 pairs"},
		{name: "huge block", body: block(1<<31, "kkk"), pairs: 0,
			reason: "a block of 2147483648 pairs"},
		{name: "no keys", body: block(2, "k"), pairs: 0, reason: "cut off"},
		{name: "one value", body: block(2, "kk\x01\x04\x00\x00\x00\x00\x00\x00vvv"), pairs: 1,
			reason: "cut off"},
		{name: "one block of two", body: block(1, "k\x01\x00\x00\x00v"), pairs: 1,
			reason: "cut off"},
	} {
		d, err := openDump(append(appendHeader(nil, &h), c.body...))
		if err != nil {
			t.Fatal(err)
		}
		if got := readDump(d); len(got) != c.pairs || d.Err() == nil ||
			!strings.Contains(d.Err().Error(), c.reason) {
			t.Errorf("%s: %d pairs, %v", c.name, len(got), d.Err())
		}
	}
}

// TestTrimmedBlocks: values fill blocks before their number does.
func TestTrimmedBlocks(t *testing.T) {
	h := Header{KeySize: 4, ValueSize: 1 << 19, Entries: 40, Packing: Trimmed}
	pairs := testPairs(&h, int(h.Entries))
	data, err := Append(nil, h, pairs)
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDump(data)
	if err != nil {
		t.Fatal(err)
	}
	if got := readDump(d); !reflect.DeepEqual(got, pairs) || d.Err() != nil {
		t.Errorf("%d pairs, %v", len(got), d.Err())
	}
}
