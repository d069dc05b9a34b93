package bpf

import (
	"bytes"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/decode"
)

// rawOf is the inverse for a recorded entry.
func rawOf(t *testing.T, p *Program) *RawProgram {
	t.Helper()
	n := decode.U32(p.Raw, p.BigEndian)
	e := entry{name: "test", mask: decode.U64(p.Raw[8:], p.BigEndian), big: p.BigEndian}
	raw := &RawProgram{Info: bytes.Clone(p.Raw[16 : 16+n]), BigEndian: p.BigEndian}
	copy(e.info[:], raw.Info)
	e.data = p.Raw[16+n:]
	e.findArrays()
	if e.errs != nil {
		t.Fatal(e.errs)
	}
	for i := range e.arrays {
		raw.Arrays[i] = e.arrays[i].b
	}
	return raw
}

// TestAppendProgram reproduces perf's entries.
func TestAppendProgram(t *testing.T) {
	for _, name := range []string{"bpf", "bpf-lines", "bpf-before"} {
		for _, p := range decodeRecorded(t, name) {
			got := AppendProgram(nil, rawOf(t, &p))
			want := bytes.Clone(p.Raw)
			for i, d := range Arrays { // perf leaves its own pointers where nothing is
				if decode.U64(want[8:], false)>>i&1 == 0 {
					clear(want[16+d.Pointer : 16+d.Pointer+8])
				}
			}
			// perf counts arrays that are empty as present, at the place of the next.
			for i := range Arrays {
				if decode.U64(got[8:], false)>>i&1 == 0 {
					want[8+i/8] &^= 1 << (i % 8)
					clear(want[16+Arrays[i].Pointer : 16+Arrays[i].Pointer+8])
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: program %d: %d bytes, perf wrote %d others", name, p.ID, len(got), len(want))
			}
		}
	}
}

// TestRoundTrip encodes built programs of both byte orders, after existing bytes.
func TestRoundTrip(t *testing.T) {
	for _, big := range []bool{false, true} {
		for _, omit := range []uint64{0, bpfbuild.Jited, bpfbuild.LineInfo | bpfbuild.ProgTags} {
			b := sample()
			b.Omit = omit
			p := &decodeBuilt(t, big, b)[0]
			section := bpfbuild.OrderOf(big).AppendUint32(nil, 1)
			section = AppendProgram(section, rawOf(t, p))
			blobs := bpfbuild.OrderOf(big).AppendUint32(nil, 1)
			blobs = AppendBTF(blobs, 4, bpfbuild.BTF(big, &b))
			btfs, err := DecodeBTFs("test", blobs, 0, big)
			if err != nil {
				t.Fatal(err)
			}
			again, err := DecodePrograms("test", section, 0, big, btfs)
			if err != nil || len(again) != 1 {
				t.Fatal(err)
			}
			if got, want := text(again), text([]Program{*p}); got != want {
				t.Errorf("big %v, without %#x: got\n%s\nwant\n%s", big, omit, got, want)
			}
		}
	}
}

// TestAppendShort has an info that ends before some of its pointers.
func TestAppendShort(t *testing.T) {
	for n := range bpfbuild.InfoSize {
		raw := &RawProgram{Info: bytes.Repeat([]byte{0xff}, n)}
		raw.Arrays[ArrayJITedInsns] = make([]byte, 8)
		raw.Arrays[ArrayProgTags] = make([]byte, 9)
		got := AppendProgram(nil, raw)
		if len(got) != 16+n+8+16 {
			t.Fatalf("info of %d bytes: entry of %d", n, len(got))
		}
		// The kernel's pointers never stay, also not in the last bytes of the info.
		for i, d := range Arrays {
			want := map[int]uint64{ArrayProgTags: 8}[i]
			if d.Pointer+8 <= n && decode.U64(got[16+d.Pointer:], false) != want {
				t.Errorf("info of %d bytes: pointer of %s is %#x", n, d.name,
					decode.U64(got[16+d.Pointer:], false))
			}
		}
	}
}

// TestAppendBTFOrder: the order is the magic's, also of blobs that are none.
func TestAppendBTFOrder(t *testing.T) {
	for blob, want := range map[string]byte{"\xeb\x9f\x01": 0, "\x9f\xeb\x01": 7, "\xeb\xeb": 7,
		"\x9f\x9f": 7, "\xeb": 7, "": 7} {
		if got := AppendBTF(nil, 7, []byte(blob)); got[0] != want || len(got) != 8+len(blob) {
			t.Errorf("%x becomes %x", blob, got)
		}
	}
}
