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
		{"alone", id(false, 4), false, 4, sum20},
		{"big endian", id(true, 4), true, 4, sum20},
		{"wrong byte order", id(true, 4), false, 4, ""},
		{"after the ABI tag", slices.Concat(abi, id(false, 4)), false, 4, sum20},
		{"after Go's own", slices.Concat(golang, id(false, 4)), false, 4, sum20},
		{"after properties, aligned to 8", slices.Concat(property, id(false, 8)), false, 8, sum20},
		{"aligned to 8, said 4", slices.Concat(property, id(false, 8)), false, 4, sum20},
		{"aligned to 4, said 8", slices.Concat(golang, id(false, 4)), false, 8, sum20},
		{"alignment 0", id(false, 4), false, 0, sum20},
		{"8 bytes, as lld's fast", note(false, "GNU\x00", 3, sum20[:8], 4), false, 4, sum20[:8]},
		{"unpadded at the end", id(false, 4)[:12+4+20], false, 4, sum20},
		{"of another vendor", note(false, "Xen\x00", 3, sum20, 4), false, 4, ""},
		{"name without NUL", note(false, "GNU", 3, sum20, 4), false, 4, ""},
		{"zeros", note(false, "GNU\x00", 3, strings.Repeat("\x00", 20), 4), false, 4, ""},
		{"too long", note(false, "GNU\x00", 3, strings.Repeat("x", MaxLen+1), 4), false, 4, ""},
		{"empty", note(false, "GNU\x00", 3, "", 4), false, 4, ""},
		{"empty, then one", slices.Concat(note(false, "GNU\x00", 3, "", 4), id(false, 4)),
			false, 4, sum20},
		{"description overruns", id(false, 4)[:30], false, 4, ""},
		{"endless name", []byte("\xff\xff\xff\xff\x04\x00\x00\x00\x03\x00\x00\x00GNU\x00abcd"),
			false, 4, ""},
		{"endless description",
			[]byte("\x04\x00\x00\x00\xff\xff\xff\xff\x03\x00\x00\x00GNU\x00abcd"),
			false, 4, ""},
		{"nothing", nil, false, 4, ""},
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
