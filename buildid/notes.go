package buildid

import "encoding/binary"

const (
	noteHeader   = 12 // n_namesz, n_descsz, n_type
	gnuBuildType = 3  // NT_GNU_BUILD_ID of elf.h
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
	if id, ok := fromNotes(notes, bigEndian, first); ok {
		return id, true
	}
	return fromNotes(notes, bigEndian, second)
}

// fromNotes walks the notes with one alignment: of the description's start and of the next note's,
// counted from the start of each note (glibc, ELF_NOTE_DESC_OFFSET and ELF_NOTE_NEXT_OFFSET).
func fromNotes(b []byte, bigEndian bool, align uint64) (ID, bool) {
	var order binary.ByteOrder = binary.LittleEndian
	if bigEndian {
		order = binary.BigEndian
	}
	for len(b) >= noteHeader {
		nameLen, descLen := uint64(order.Uint32(b)), uint64(order.Uint32(b[4:]))
		kind := order.Uint32(b[8:])
		desc := roundUp(noteHeader+nameLen, align)
		end := desc + descLen // both are 32 bits wide: no overflow
		if end > uint64(len(b)) {
			return ID{}, false
		}
		name := b[noteHeader : noteHeader+nameLen]
		if kind == gnuBuildType && string(name) == "GNU\x00" {
			if id := New(b[desc:end]); !id.IsZero() {
				return id, true
			}
		}
		b = b[min(roundUp(end, align), uint64(len(b))):]
	}
	return ID{}, false
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
