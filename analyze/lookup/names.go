package lookup

import (
	debugelf "debug/elf"
	"path"
	"slices"

	"symbolize/analyze/advice"
	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// nameAll makes the new texts of a batch, so that printing, which several goroutines do, only
// reads.
func (l *Looker) nameAll() {
	n := l.finder.NumTexts()
	l.names = append(l.names, make([]string, n-len(l.names))...)
	l.files = append(l.files, make([]string, n-len(l.files))...)
	l.demangled += l.demangler.WarmNames(func(yield func(string) bool) {
		for k := range l.addrs {
			if !l.newNames(k, yield) {
				return
			}
		}
	})
	for k := range l.addrs {
		l.nameOne(k)
	}
}

// newNames yields the names that an answer needs and no answer before it did.
func (l *Looker) newNames(k int, yield func(string) bool) bool {
	p := l.finder.Place(k)
	frames := l.finder.Frames(p)
	for i := range frames {
		if !l.newName(frames[i].Name, yield) {
			return false
		}
	}
	if n := l.llvmSymbol(k); n >= 0 {
		return l.llvmNames[n] != "" || l.sameName(p, n) != 0 || yield(l.llvm.symbols[n].Name)
	}
	t, _ := l.finder.Function(p, l.o.Names)
	return l.newName(t, yield)
}

// newName yields a name that has not been made and is not stored as it is printed.
func (l *Looker) newName(t resolve.Text, yield func(string) bool) bool {
	return t == 0 || l.names[t] != "" || l.finder.Demangled(t) != "" || yield(l.finder.Text(t))
}

// sameName returns the printed name stored in the tables for a place, if it is the name of symbol
// n of llvm, else 0.
func (l *Looker) sameName(p *resolve.Place, n int) resolve.Text {
	same := func(t resolve.Text) bool {
		return l.finder.Demangled(t) != "" && l.finder.Text(t) == l.llvm.symbols[n].Name
	}
	if frames := l.finder.Frames(p); len(frames) > 0 && same(frames[len(frames)-1].Name) {
		return frames[len(frames)-1].Name
	}
	if same(p.Symbol) {
		return p.Symbol
	}
	return 0
}

// nameOne sets the names and paths of one answer.
func (l *Looker) nameOne(k int) {
	p := l.finder.Place(k)
	frames := l.finder.Frames(p)
	for i := range frames {
		f := &frames[i]
		l.setName(f.Name)
		l.setFile(f.File)
		l.setFile(f.DeclFile)
	}
	if n := l.llvmSymbol(k); n >= 0 {
		if l.llvmNames[n] == "" {
			l.llvmNames[n] = l.llvmName(p, n)
		}
	} else if t, _ := l.finder.Function(p, l.o.Names); t != 0 {
		l.setName(t)
	}
}

// llvmName returns the name of symbol n of llvm, at a place, as it is printed.
func (l *Looker) llvmName(p *resolve.Place, n int) string {
	if t := l.sameName(p, n); t != 0 {
		return l.finder.Demangled(t)
	}
	return l.demangler.Name(l.llvm.symbols[n].Name)
}

func (l *Looker) setName(t resolve.Text) {
	if t == 0 || l.names[t] != "" {
		return
	}
	if l.names[t] = l.finder.Demangled(t); l.names[t] == "" {
		name := l.finder.Text(t)
		if l.obj.manifest.Kind == ingest.JIT {
			name = resolve.WholeSymbol(l.obj.view, name)
		}
		l.names[t] = l.demangler.Name(name)
	}
}

func (l *Looker) setFile(t resolve.Text) {
	if t != 0 && l.files[t] == "" {
		l.files[t] = l.path(l.finder.Text(t))
	}
}

func (l *Looker) path(s string) string {
	if l.o.Basenames && s != "" {
		s = path.Base(s)
	}
	return texts.Printable(s)
}

// llvmSymbol returns the number of the symbol that llvm-symbolizer prints for an address, −1
// if there is none.
func (l *Looker) llvmSymbol(k int) int {
	if l.llvm == nil {
		return -1
	}
	return int(l.llvmOf[k])
}

// countStripped counts the addresses of a batch that are in code without a named function, of a
// file without debug information: its debug file has their names.
func (l *Looker) countStripped() {
	m := l.obj.manifest
	if hasLines(m) || len(m.Layout) == 0 {
		return
	}
	for k, a := range l.addrs {
		p := l.finder.Place(k)
		name, _ := l.finder.Function(p, l.o.Names)
		if l.llvmSymbol(k) < 0 && (p.SymbolKind.Nameless() || name == 0 && isCode(m, a)) {
			l.stripped++
		}
	}
}

// isCode reports whether an address is in an executable segment of the file.
func isCode(m *store.Manifest, a addr.Addr) bool {
	return slices.ContainsFunc(m.Layout, func(s elf.Segment) bool {
		return s.Flags&uint32(debugelf.PF_X) != 0 && a >= s.Addr && uint64(a-s.Addr) < s.MemSize
	})
}

// Stripped returns how many of the addresses that were looked up have no named function because the
// file is stripped and its debug file was not found, and how to get that; 0 in other files.
func (l *Looker) Stripped() (n int, step string) {
	if l.stripped == 0 {
		return 0, ""
	}
	c := advice.Case{Reason: ingest.Stripped,
		Object: &ingest.Object{Kind: l.obj.manifest.Kind, ID: l.obj.manifest.ID}}
	step = "put its debug file next to it"
	if get := c.Step(); get != "" {
		step = "`" + get + "`, or `symbolize index PATH` where its debug file is"
	}
	return l.stripped, step
}
