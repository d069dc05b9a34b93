package elf

import (
	"debug/elf"
	"fmt"

	"symbolize/ingest/decode"
)

// IDVisibility is whether a kernel reads a file's build ID when it records mappings and stacks
// (lib/buildid.c), or the reason why not: frames of such a file are recorded as bare addresses.
type IDVisibility uint8

// The values of IDVisibility.
const (
	Seen         IDVisibility = iota
	NoNote                    // the file has no build ID
	OutsideNotes              // in a section, but in no PT_NOTE segment: kernels read no sections
	LongID                    // more than 20 bytes, the kernel's limit
	LateHeader                // its PT_NOTE is not among the first 256 program headers
	BeyondPage                // the note or a program header is beyond the first page; Linux 6.12 reads on
	numVisibilities
)

var visibilityText = [numVisibilities]string{
	Seen: "seen", NoNote: "no build ID", OutsideNotes: "note outside PT_NOTE",
	LongID: "build ID of more than 20 bytes", LateHeader: "more than 256 program headers",
	BeyondPage: "note beyond the first page",
}

// String returns a short description.
func (s IDVisibility) String() string {
	if s < numVisibilities {
		return visibilityText[s]
	}
	return "unknown"
}

// The kernels' limits: before 6.12 the first page, with program headers and notes; since then the
// whole file, but only kernelHeaders program headers.
const (
	kernelPage    = 4096
	kernelHeaders = 256
	kernelMaxID   = 20 // BUILD_ID_SIZE_MAX
)

// KernelIDVisibility returns the visibility of the build ID to kernels from 6.12 on, and to those
// before. It applies to files that are mapped for execution: ET_EXEC and ET_DYN.
func (f *File) KernelIDVisibility() (now, before IDVisibility, err error) {
	now, before = NoNote, NoNote
	if !f.ID.IsZero() {
		now, before = OutsideNotes, OutsideNotes
	}
	header := uint64(phdr64)
	start := uint64(ehdr64)
	if f.Class == elf.ELFCLASS32 {
		header, start = phdr32, ehdr32
	}
	// Kernels before 6.12 assume that the program headers follow the ELF header.
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

// closer returns the more specific reason: a skipped note before a missing one.
func closer(old, s IDVisibility) IDVisibility {
	if old == NoNote || old == OutsideNotes {
		return s
	}
	return old
}

// kernelNote returns the length of the build ID that the kernel finds in a PT_NOTE, 0 for none:
// it assumes that all notes are aligned to 4 bytes.
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

// IsGo reports whether Go's linker produced the file, or a part of it.
func (f *File) IsGo() bool {
	for i := range f.Sections {
		switch f.Sections[i].Name {
		case ".go.buildinfo", ".note.go.buildid", ".gopclntab":
			return true
		}
	}
	return false
}
