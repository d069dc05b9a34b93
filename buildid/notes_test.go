package buildid

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// note encodes one ELF note.
func note(big bool, name string, kind uint32, desc string, align int) []byte {
	o := binary.AppendByteOrder(binary.LittleEndian)
	if big {
		o = binary.BigEndian
	}
	b := o.AppendUint32(nil, uint32(len(name)))
	b = o.AppendUint32(b, uint32(len(desc)))
	b = o.AppendUint32(b, kind)
	b = append(b, name...)
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	b = append(b, desc...)
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}

const sum20 = "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67"

func TestFromNotes(t *testing.T) {
	id := func(big bool, align int) []byte { return note(big, "GNU\x00", 3, sum20, align) }
	abi := note(false, "GNU\x00", 1, strings.Repeat("a", 16), 4)
	property := note(false, "GNU\x00", 5, strings.Repeat("p", 13), 8)
	golang := note(false, "Go\x00\x00", 4, strings.Repeat("g", 83), 4)
	tests := []struct {
		name  string
		notes []byte
		big   bool
		align int
		want  string // bytes of the ID
	}{
		{name: "alone", notes: id(false, 4), align: 4, want: sum20},
		{name: "big endian", notes: id(true, 4), big: true, align: 4, want: sum20},
		{name: "wrong byte order", notes: id(true, 4), align: 4},
		{name: "after the ABI tag", notes: slices.Concat(abi, id(false, 4)), align: 4,
			want: sum20},
		{name: "after Go's own", notes: slices.Concat(golang, id(false, 4)), align: 4,
			want: sum20},
		{name: "after properties, aligned to 8", notes: slices.Concat(property, id(false, 8)),
			align: 8, want: sum20},
		{name: "aligned to 8, said 4", notes: slices.Concat(property, id(false, 8)), align: 4,
			want: sum20},
		{name: "aligned to 4, said 8", notes: slices.Concat(golang, id(false, 4)), align: 8,
			want: sum20},
		{name: "alignment 0", notes: id(false, 4), align: 0, want: sum20},
		{name: "8 bytes, as lld's fast", notes: note(false, "GNU\x00", 3, sum20[:8], 4), align: 4,
			want: sum20[:8]},
		{name: "unpadded at the end", notes: id(false, 4)[:12+4+20], align: 4, want: sum20},
		{name: "of another vendor", notes: note(false, "Xen\x00", 3, sum20, 4), align: 4},
		{name: "name without NUL", notes: note(false, "GNU", 3, sum20, 4), align: 4},
		{name: "zeros", notes: note(false, "GNU\x00", 3, strings.Repeat("\x00", 20), 4), align: 4},
		{name: "too long", notes: note(false, "GNU\x00", 3, strings.Repeat("x", MaxLen+1), 4),
			align: 4},
		{name: "empty", notes: note(false, "GNU\x00", 3, "", 4), align: 4},
		{name: "empty, then one",
			notes: slices.Concat(note(false, "GNU\x00", 3, "", 4), id(false, 4)), align: 4,
			want: sum20},
		{name: "description overruns", notes: id(false, 4)[:30], align: 4},
		{name: "endless name",
			notes: []byte("\xff\xff\xff\xff\x04\x00\x00\x00\x03\x00\x00\x00GNU\x00abcd"),
			align: 4},
		{name: "endless description",
			notes: []byte("\x04\x00\x00\x00\xff\xff\xff\xff\x03\x00\x00\x00GNU\x00abcd"),
			align: 4},
		{name: "nothing", align: 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := FromNotes(tt.notes, tt.big, tt.align)
			if ok != (tt.want != "") || string(got.Bytes()) != tt.want {
				t.Errorf("got %v, %v, want %x", got, ok, tt.want)
			}
			if ok && (!got.Exact() || got.Space() != GNU) {
				t.Errorf("%v: exact %v, space %v", got, got.Exact(), got.Space())
			}
		})
	}
}

func TestKernelNotes(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := slices.Concat(note(big, "Linux\x00", 257, "\x00\x00\x00\x00", 4),
			note(big, "GNU\x00", 3, sum20, 4), note(big, "Xen\x00", 6, "linux\x00", 4))
		if id, ok := KernelNotes(b); !ok || string(id.Bytes()) != sum20 {
			t.Errorf("big endian %v: got %v, %v", big, id, ok)
		}
	}
	if id, ok := KernelNotes([]byte("no notes at all, but some text")); ok {
		t.Errorf("found %v in text", id)
	}
}

// TestNotesTruncated cuts notes at every length.
func TestNotesTruncated(t *testing.T) {
	whole := slices.Concat(note(false, "Go\x00\x00", 4, "golang", 4),
		note(false, "GNU\x00", 3, sum20, 4))
	for n := range len(whole) {
		if id, ok := FromNotes(whole[:n], false, 4); ok {
			t.Errorf("%d of %d bytes give %v", n, len(whole), id)
		}
	}
}

func FuzzFromNotes(f *testing.F) {
	f.Add(note(false, "GNU\x00", 3, sum20, 4), false, 4)
	f.Add(slices.Concat(note(true, "GNU\x00", 1, "abcd", 8), note(true, "GNU\x00", 3, sum20, 8)),
		true, 8)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\x03\x00\x00\x00GNU\x00"), false, 4)
	f.Fuzz(func(t *testing.T, notes []byte, big bool, align int) {
		id, ok := FromNotes(notes, big, align)
		if ok == id.IsZero() {
			t.Errorf("%v, %v", id, ok)
		}
		if id.Len() > min(MaxLen, len(notes)) {
			t.Errorf("%d bytes of ID from %d", id.Len(), len(notes))
		}
	})
}
