package store

import (
	"bytes"
	"cmp"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/store/symtab"
)

// Producer is the revision of the decoders that make tables. A file with a smaller one in its row
// or source is read again. It grows whenever the result of a file changes, by ten: those of rows and
// tables with more or less in them are between (store/indexer).
const Producer = 55

// SourceInfo describes one source of an object. Sources are immutable: a source with other content
// has another Digest.
type SourceInfo struct {
	Kind     SourceKind
	Digest   [32]byte // of the table's content, symtab.Encoded.Digest
	Producer uint32   // revision of the decoder that made the table
	Path     string   // the file that was read; of several the bytewise smallest path
	Funcs    uint32   // functions
	Named    uint64   // bytes of code with a name; for Unwind, with a rule; for Calls, in functions
	Size     int64    // bytes stored, without the captured input

	// The fields below are filled in by Sink.Merge.

	TableVersion uint32 // symtab.Version that wrote the table
	Chunks       uint32 // blocks of the table
	Strings      uint32
	RawSize      uint64 // bytes of the captured input; 0 if none was kept
	RawPieces    uint32 // stored pieces of the captured input
	RawStored    uint64 // bytes of the pieces
	RawDigest    [32]byte

	// Input and RawInput are the SHA-256 of the files of a store on disk that have the table and the
	// captured input; zero elsewhere. They are not part of the encoded manifest.
	Input, RawInput [32]byte
}

// RefSymbol is a symbol to which captures relate a kernel's addresses; its address is relative to
// `_text`.
type RefSymbol struct {
	Name string
	Addr addr.Addr
}

// Manifest holds the facts of a store about one object, except names.
type Manifest struct {
	ID        buildid.ID // exact
	Kind      ingest.ObjectKind
	Machine   uint16 // ELF e_machine; 0 if not known
	Class     uint8  // ELF EI_CLASS; 0 if not known
	BigEndian bool
	Type      uint16 // ELF e_type of the runtime file, else of any; 0 if not known

	// Layout holds the PT_LOAD segments of the runtime file, in its order; empty until one is
	// known. Sections is the same for modules, laid out by the loader's rule.
	Layout   []elf.Segment
	Sections []elf.PlacedSection
	// OtherLayouts holds the differing layouts of other runtime files of the same build ID,
	// encoded; Verify reports them.
	OtherLayouts [][]byte

	RefSyms []RefSymbol  // kernel: `_stext` and others; sorted by name, then address
	VDSO    []buildid.ID // kernel: its vdso images, sorted
	Sources []SourceInfo // as CompareSources orders them

	// Variants are the captured loads of a JITed function, ordered by image, then load.
	// MoreVariants reports that some were dropped.
	Variants     []Variant
	MoreVariants bool
	// Probable lists, sorted, the objects that this one may be. The ID of this object is made of
	// the facts that a capture or a line of text has of a function without its lines (symbol and length,
	// tag, or name and number of instructions); functions with other lines may share them.
	Probable []buildid.ID
}

// RefSymbol returns the address of a reference symbol relative to `_text`, which itself is always
// known.
func (m *Manifest) RefSymbol(name string) (addr.Addr, bool) {
	for _, r := range m.RefSyms {
		if r.Name == name {
			return r.Addr, true
		}
	}
	return 0, name == "_text"
}

// OnlyVDSO reports whether only the vdso of a kernel is known, from a bundle: the kernel itself is
// not indexed.
func (m *Manifest) OnlyVDSO() bool { return m.Kind == ingest.Kernel && !m.HasNames() }

// CompareSources orders Manifest.Sources, and so their layers: by kind, newest producer first, most
// named bytes first, digest. Of lists of the kernel's symbols the one with most functions is first:
// they have no sizes, so that one with gaps names as many bytes.
func CompareSources(a, b SourceInfo) int {
	functions := 0
	if a.Kind.List() {
		functions = cmp.Compare(b.Funcs, a.Funcs)
	}
	return cmp.Or(
		CompareKinds(a.Kind, b.Kind),
		cmp.Compare(b.Producer, a.Producer),
		functions,
		cmp.Compare(b.Named, a.Named),
		bytes.Compare(a.Digest[:], b.Digest[:]),
	)
}

// Rivals reports whether source i and the source before it come from two files of the same build ID
// with different content: same kind and decoder. JIT is excepted, as a function has a table for
// each tag it was loaded with; so is Unwind, as a debug file has rules for other code than the
// runtime file.
func (m *Manifest) Rivals(i int) bool {
	if i == 0 {
		return false
	}
	a, b := &m.Sources[i-1], &m.Sources[i]
	return a.Kind == b.Kind && a.Producer == b.Producer && !a.Kind.PerLoad() && a.Kind.Names()
}

// FindSource returns the index of a source with the kind and the table of s; -1 if there is none.
func FindSource(list []SourceInfo, s *SourceInfo) int {
	return slices.IndexFunc(list, func(o SourceInfo) bool {
		return o.Kind == s.Kind && o.Digest == s.Digest
	})
}

// OtherSegments decodes the PT_LOAD segments of OtherLayouts.
func (m *Manifest) OtherSegments() (list [][]elf.Segment) {
	for _, b := range m.OtherLayouts {
		if segments, _, err := decodeLayout(b); err == nil { // checked by DecodeManifest
			list = append(list, segments)
		}
	}
	return list
}

// NewSource is one source as the indexer makes it.
type NewSource struct {
	Info  SourceInfo // Kind, Producer and Path; Describe fills in the rest from Table and Raw
	Table *symtab.Encoded
	Raw   []byte // a captured input to keep, from which Rebuild can make the table again
}

// SourceOf returns the source of a table that the present decoders made of a file.
func SourceOf(kind SourceKind, path string, table *symtab.Encoded) NewSource {
	return NewSource{Info: SourceInfo{Kind: kind, Producer: Producer, Path: path}, Table: table}
}

// Contribution is the addition of one file to one object. Put the blobs that its variants name
// first.
type Contribution struct {
	Manifest Manifest // Sources empty; only this file's facts
	Sources  []NewSource
}

// Quality returns the best kind of source of names that the object has, 0 for none.
func (m *Manifest) Quality() SourceKind {
	if !m.HasNames() {
		return 0
	}
	return m.Sources[0].Kind
}

// HasNames reports whether the object has a source of names.
func (m *Manifest) HasNames() bool { return len(m.Sources) > 0 && m.Sources[0].Kind.Names() }

// Size returns the bytes stored for the object's sources.
func (m *Manifest) Size() (n int64) {
	for i := range m.Sources {
		n += m.Sources[i].Size + int64(m.Sources[i].RawStored)
	}
	return n
}
