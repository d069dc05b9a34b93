package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

// NamePolicy selects the name that a physical function shows where its symbol and its
// debug information differ, as they do for two thirds of libc.
type NamePolicy uint8

// The policies.
const (
	// SymbolNames uses the symbol that covers the address: with suffixes such as .cold, and with
	// the aliases that perf chooses.
	SymbolNames NamePolicy = iota
	// DWARFNames uses the linkage name of the debug information, otherwise its name. C++ functions
	// without a linkage name (gcc writes none in unnamed namespaces and for template instances with
	// local types) get the mangled name of their symbol, as in addr2line.
	DWARFNames
)

// NamePolicies are the words for the policies, in their order.
var NamePolicies = []string{SymbolNames: "symbols", DWARFNames: "dwarf"}

// ParseNamePolicy returns the policy of a word.
func ParseNamePolicy(word string) (NamePolicy, error) {
	if i := slices.Index(NamePolicies, word); i >= 0 {
		return NamePolicy(i), nil
	}
	return 0, fmt.Errorf("names %q is not one of symbols, dwarf", word)
}

// Text is the number of a name or path in a Finder; 0 is "".
type Text uint32

// Frame is one function activation as the tables have it.
type Frame struct {
	Name   Text // 0 if not known
	File   Text // of the code, or of the call in it
	Line   uint32
	Column uint32 // 0 in tables without columns

	DeclFile Text // where the function is declared
	DeclLine uint32
}

// Place is the result of the tables for one address.
type Place struct {
	// Symbol is the name that symbol tables have for the address, 0 if none; it begins at
	// SymbolStart.
	Symbol      Text
	SymbolStart addr.Addr
	SymbolSize  uint64
	// FuncStart is the start of the debug-information function that Finder.Frames describes; the
	// function has FuncSize bytes.
	FuncStart addr.Addr
	FuncSize  uint64
	// SymbolKind and DebugKind are the kinds of sources that answered, 0 for none.
	SymbolKind, DebugKind store.SourceKind

	unsized  bool // the symbol had no size
	from, to uint32
}

// Finder answers addresses of one object from all its tables: frames of the best table with debug
// information that has the address, and the name of the best symbol table. It is for one goroutine
// at a time. Its results are valid until the next Join, but for Texts, which stay.
type Finder struct {
	view     store.View
	manifest *store.Manifest
	layers   []layer
	texts    []string
	shown    []string // by Text: demangled, "" where the table has none; nil without UseDemangled
	shownBy  string
	errs     []error

	places []Place
	frames []Frame

	textsLater bool // Joins read no texts
	only       int  // the number of the one source that Joins ask, plus one; 0 for all
	keepStarts bool
	starts     []symtab.CallStart // of frames, with keepStarts

	// The addresses looked up in the current table, and their places; at is nil if those are
	// all.
	ask  []addr.Addr
	at   []uint32
	hits []symtab.Hit
}

// layer is one open table.
type layer struct {
	table *symtab.Table
	err   error
	names textSet[symtab.NameID]
	files textSet[symtab.FileID]
}

// NewFinder returns a Finder for the object of m, a manifest of v.
func NewFinder(v store.View, m *store.Manifest) *Finder {
	return &Finder{
		view: v, manifest: m, layers: make([]layer, len(m.Sources)), texts: make([]string, 1),
	}
}

// Text returns a text by its number.
func (f *Finder) Text(t Text) string { return f.texts[t] }

// NumTexts returns how many texts there are so far; Texts are below it.
func (f *Finder) NumTexts() int { return len(f.texts) }

// Errors returns the errors of the last Join: one for each table that could not be read, or not
// whole. The others have answered all the same.
func (f *Finder) Errors() []error { return f.errs }

// Place returns the result for the address with that number in the last Join.
func (f *Finder) Place(i int) *Place { return &f.places[i] }

// Frames returns the frames of a Place, innermost first, the last of which is the physical
// function; none if no table with debug information has the address. A last frame without a name is
// of lines that no function covers.
func (f *Finder) Frames(p *Place) []Frame { return f.frames[p.from:p.to] }

// KeepStarts makes Joins find out where inlined calls begin, for Starts, which needs longer. It
// must be called before the first Join.
func (f *Finder) KeepStarts() { f.keepStarts = true }

// Starts returns where the code of each of the Frames of a Place begins, as the debug
// information has it; nil without KeepStarts.
func (f *Finder) Starts(p *Place) []symtab.CallStart {
	if !f.keepStarts {
		return nil
	}
	return f.starts[p.from:p.to]
}

// Function returns the name of the physical function of a Place and where the function of that name
// begins; 0 if it has no name.
func (f *Finder) Function(p *Place, names NamePolicy) (Text, addr.Addr) {
	var own Text
	if p.to > p.from {
		own = f.frames[p.to-1].Name
	}
	switch {
	case own == 0:
		return p.Symbol, p.SymbolStart
	case p.Symbol == 0:
		return own, p.FuncStart
	case names == DWARFNames:
		if p.Symbol != own && p.SymbolStart == p.FuncStart && !isMangled(f.texts[own]) &&
			isMangled(f.texts[p.Symbol]) {
			own = p.Symbol
		}
		return own, p.FuncStart
	case p.unsized && p.SymbolStart < p.FuncStart:
		// A label reaches to the next symbol, over functions that have none.
		return own, p.FuncStart
	}
	return p.Symbol, p.SymbolStart
}

// isMangled reports whether a name is one of C++ or Rust, of either mangling, that has
// its parameters.
func isMangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R")
}

// Join looks up addrs, which must be sorted, each table once and in order.
func (f *Finder) Join(addrs []addr.Addr) {
	f.places = slices.Grow(f.places[:0], len(addrs))[:len(addrs)]
	clear(f.places)
	f.frames, f.starts, f.errs = f.frames[:0], f.starts[:0], f.errs[:0]
	for i := range f.manifest.Sources {
		kind := f.manifest.Sources[i].Kind
		if !kind.Names() || f.only > 0 && f.only != i+1 {
			continue // no names
		}
		f.choose(addrs, kind)
		if len(f.ask) == 0 {
			continue
		}
		l := f.layer(i)
		err := l.err
		if err == nil {
			// Debug information has lines and inlined calls, the others the names of symbols.
			if kind.Frames() {
				err = f.joinFrames(l, kind)
			} else {
				err = f.joinSymbols(l, kind)
			}
			if !f.textsLater {
				textErr := f.readTexts(l)
				if textErr != nil {
					f.forget()
				}
				err = cmp.Or(err, textErr)
			}
		}
		if err != nil {
			f.errs = append(f.errs, fmt.Errorf("%s of %s: %w", kind, f.manifest.ID, err))
		}
	}
}

// needs reports whether a source of a kind can add to a place. Stubs and guessed functions name
// only places without another name.
func (f *Finder) needs(p *Place, kind store.SourceKind) bool {
	own := p.to > p.from && f.frames[p.to-1].Name != 0
	switch {
	case kind.Frames():
		return !own
	case kind.Fallback():
		return !own && p.Symbol == 0
	}
	return p.Symbol == 0
}

// choose sets f.ask to the addresses to look up in a source of a kind.
func (f *Finder) choose(addrs []addr.Addr, kind store.SourceKind) {
	n := 0
	for n < len(addrs) && f.needs(&f.places[n], kind) {
		n++
	}
	if n == len(addrs) {
		f.ask, f.at = addrs, nil
		return
	}
	ask := make([]addr.Addr, 0, len(addrs)-1)
	at := make([]uint32, 0, len(addrs)-1)
	for i := range addrs {
		if f.needs(&f.places[i], kind) {
			ask, at = append(ask, addrs[i]), append(at, uint32(i))
		}
	}
	f.ask, f.at = ask, at
}

// place returns the place of the address that the present table knows as number i.
func (f *Finder) place(i int) *Place {
	if f.at != nil {
		i = int(f.at[i])
	}
	return &f.places[i]
}

// layer opens the table of a source. One that cannot be opened is not tried again.
func (f *Finder) layer(i int) *layer {
	l := &f.layers[i]
	if l.table == nil && l.err == nil {
		if l.table, l.err = f.view.Open(f.manifest, i); l.err == nil {
			if f.keepStarts {
				l.table.KeepStarts()
			}
			l.names.texts = make([]Text, l.table.NumNames())
			l.files.texts = make([]Text, l.table.NumFiles())
		}
	}
	return l
}

// joinFrames looks up a table with debug information.
func (f *Finder) joinFrames(l *layer, kind store.SourceKind) error {
	return l.table.JoinFrames(f.ask, func(i int, hit symtab.Hit, frames []symtab.Frame) {
		p := f.place(i)
		if hit.Flags&symtab.Nameless != 0 && p.to > p.from {
			return // a better source has such lines too
		}
		p.FuncStart, p.FuncSize, p.DebugKind = hit.Start, hit.Size, kind
		p.from = uint32(len(f.frames))
		for k := range frames {
			s := &frames[k]
			f.frames = append(f.frames, Frame{
				Name: l.names.text(f, s.Name), File: l.files.text(f, s.File), Line: s.Line,
				Column: s.Column, DeclFile: l.files.text(f, s.DeclFile), DeclLine: s.DeclLine,
			})
		}
		p.to = uint32(len(f.frames))
		if f.keepStarts {
			f.starts = append(f.starts, l.table.Starts()...)
			for len(f.starts) < len(f.frames) { // a table without inlined calls
				f.starts = append(f.starts, symtab.CallStart{})
			}
		}
	})
}

// joinSymbols looks up a table of symbols.
func (f *Finder) joinSymbols(l *layer, kind store.SourceKind) error {
	f.hits = slices.Grow(f.hits[:0], len(f.ask))[:len(f.ask)]
	err := l.table.Join(f.ask, f.hits)
	for i := range f.hits {
		h := &f.hits[i]
		if !h.OK {
			continue
		}
		p := f.place(i)
		p.Symbol, p.SymbolKind = l.names.text(f, h.Name), kind
		p.SymbolStart, p.SymbolSize = h.Start, h.Size
		p.unsized = h.Flags&symtab.Unsized != 0
	}
	return err
}
