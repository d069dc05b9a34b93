package elf

import (
	"debug/elf"
	"fmt"

	"symbolize/ingest/decode"
)

// Sight says whether a kernel reads a file's build ID where it records mappings and
// stacks (lib/buildid.c), or why it does not: frames of such a file arrive as bare
// addresses.
type Sight uint8

// What a kernel sees.
const (
	Seen         Sight = iota
	NoNote             // the file has no build ID
	OutsideNotes       // a section has it, and no PT_NOTE segment: kernels read no sections
	LongID             // it has more than 20 bytes, which no kernel takes
	LateHeader         // its PT_NOTE is not among the first 256 program headers
	BeyondPage         // it, or a program header, lies beyond the first page; Linux 6.12 reads on
	numSights
)

var sightText = [numSights]string{
	Seen: "seen", NoNote: "no build ID", OutsideNotes: "note outside PT_NOTE",
	LongID: "build ID of more than 20 bytes", LateHeader: "more than 256 program headers",
	BeyondPage: "note beyond the first page",
}

// String returns the sight in a few words.
func (s Sight) String() string {
	if s < numSights {
		return sightText[s]
	}
	return "unknown"
}

// What kernels read: before 6.12 the first page, as far as program headers and notes lie
// there; since then the file, and so many program headers.
const (
	kernelPage    = 4096
	kernelHeaders = 256
	kernelMaxID   = 20 // BUILD_ID_SIZE_MAX
)

// KernelSight returns what kernels from 6.12 on see of the build ID, and what those
// before do. It is about files that are mapped to be run: ET_EXEC and ET_DYN.
func (f *File) KernelSight() (now, before Sight, err error) {
	now, before = NoNote, NoNote
	if !f.ID.IsZero() {
		now, before = OutsideNotes, OutsideNotes
	}
	header := uint64(phdr64)
	start := uint64(ehdr64)
	if f.Class == elf.ELFCLASS32 {
		header, start = phdr32, ehdr32
	}
	// Kernels before 6.12 take the headers to lie behind the ELF header.
	early := f.phoff == start && f.phnum <= (kernelPage-start)/header
	for _, n := range f.notes {
		length, err := f.kernelNote(n)
		if err != nil {
			return now, before, err
		}
		switch {
		case length == 0:
			continue
		case length > kernelMaxID:
			now, before = closer(now, LongID), closer(before, LongID)
			continue
		case n.header >= kernelHeaders:
			now, before = closer(now, LateHeader), closer(before, LateHeader)
			continue
		}
		now = Seen
		if early && n.off < kernelPage && n.size <= kernelPage-n.off {
			return Seen, Seen, nil
		}
		before = BeyondPage
	}
	if now != Seen {
		before = now
	}
	return now, before, nil
}

// closer keeps what is nearer to being seen: a note that the kernel passed over says more
// than one that it did not find.
func closer(old, s Sight) Sight {
	if old == NoNote || old == OutsideNotes {
		return s
	}
	return old
}

// kernelNote returns the length of the build ID that the kernel finds in a PT_NOTE, 0 for
// none: it takes all notes to be aligned to 4 bytes.
func (f *File) kernelNote(n extent) (length uint32, err error) {
	if n.off > uint64(f.size) || n.size > uint64(f.size)-n.off {
		return 0, nil
	}
	b := make([]byte, min(n.size, maxNotes))
	if err := f.readAt(b, n.off); err != nil {
		return 0, fmt.Errorf("notes: %w", err)
	}
	r := decode.New(f.Name, b, int64(n.off), f.BigEndian)
	for r.Left() > noteHeader {
		nameLen, descLen, kind := r.U32(), r.U32(), r.U32()
		name := r.Bytes(align4(nameLen))
		r.Bytes(uint64(descLen))
		if r.Err() != nil {
			break // a note that overruns ends the search, for the kernel too
		}
		const buildID = 3 // NT_GNU_BUILD_ID
		if kind == buildID && string(name) == "GNU\x00" && descLen > 0 {
			return descLen, nil
		}
		r.Skip(min(align4(descLen)-uint64(descLen), uint64(r.Left())))
	}
	return 0, nil
}

const noteHeader = 12 // n_namesz, n_descsz, n_type

func align4(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }

// IsGo reports whether Go's linker took part in a file.
func (f *File) IsGo() bool {
	for i := range f.Sections {
		switch f.Sections[i].Name {
		case ".go.buildinfo", ".note.go.buildid", ".gopclntab":
			return true
		}
	}
	return false
}
