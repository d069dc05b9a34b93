package buildid

import (
	"encoding/binary"
	"iter"
)

const (
	noteHeader   = 12 // n_namesz, n_descsz, n_type
	gnuBuildType = 3  // NT_GNU_BUILD_ID of elf.h
	goBuildType  = 4  // of cmd/internal/buildid
)

// FromNotes finds the GNU build ID in ELF notes: a PT_NOTE segment, an SHT_NOTE section, or both
// concatenated. Align is the segment's or section's alignment, 4 or 8. Linkers have written wrong
// alignments in both directions, so the other one is tried too. Ok is false if there is no build ID
// or a note is longer than the data.
func FromNotes(notes []byte, bigEndian bool, align int) (ID, bool) {
	first, second := uint64(4), uint64(8)
	if align == 8 {
		first, second = second, first
	}
	for _, align := range []uint64{first, second} {
		for desc := range notesOf(notes, bigEndian, align, "GNU\x00", gnuBuildType) {
			if id := New(desc); !id.IsZero() {
				return id, true
			}
		}
	}
	return ID{}, false
}

// GoNote finds the build ID of Go's linker in ELF notes: the text that `go tool buildid` prints, ""
// if there is none.
func GoNote(notes []byte, bigEndian bool) string {
	for desc := range notesOf(notes, bigEndian, 4, "Go\x00\x00", goBuildType) {
		return string(desc)
	}
	return ""
}

// notesOf visits the descriptions of the notes of one kind, with one alignment: of the description's
// start and of the next note's, counted from the start of each note (glibc, ELF_NOTE_DESC_OFFSET and
// ELF_NOTE_NEXT_OFFSET).
func notesOf(b []byte, bigEndian bool, align uint64, name string, kind uint32) iter.Seq[[]byte] {
	var order binary.ByteOrder = binary.LittleEndian
	if bigEndian {
		order = binary.BigEndian
	}
	return func(yield func([]byte) bool) {
		for len(b) >= noteHeader {
			nameLen, descLen := uint64(order.Uint32(b)), uint64(order.Uint32(b[4:]))
			desc := roundUp(noteHeader+nameLen, align)
			end := desc + descLen // both are 32 bits wide: no overflow
			if end > uint64(len(b)) {
				return
			}
			own := b[noteHeader : noteHeader+nameLen]
			if order.Uint32(b[8:]) == kind && string(own) == name && !yield(b[desc:end]) {
				return
			}
			b = b[min(roundUp(end, align), uint64(len(b))):]
		}
	}
}

func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// KernelNotes finds the build ID in the content of /sys/kernel/notes, or of one of the files of
// /sys/module/NAME/notes, in either byte order.
func KernelNotes(b []byte) (ID, bool) {
	if id, ok := FromNotes(b, false, 4); ok {
		return id, true
	}
	return FromNotes(b, true, 4)
}
