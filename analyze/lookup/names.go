package lookup

import (
	"path"

	"symbolize/analyze/resolve"
	"symbolize/ingest"
)

// nameAll makes the new texts of a batch, so that printing, which several goroutines do, only
// reads.
func (l *Looker) nameAll() {
	n := l.finder.NumTexts()
	l.names = append(l.names, make([]string, n-len(l.names))...)
	l.files = append(l.files, make([]string, n-len(l.files))...)
	l.demangler.WarmNames(func(yield func(string) bool) {
		for k := range l.addrs {
			if !l.wantNames(k, yield) {
				return
			}
		}
	})
	for k := range l.addrs {
		l.nameOne(k)
	}
}

// wantNames yields the names that an answer needs and no answer before it did.
func (l *Looker) wantNames(k int, yield func(string) bool) bool {
	p := l.finder.Place(k)
	frames := l.finder.Frames(p)
	for i := range frames {
		if !l.wantName(frames[i].Name, yield) {
			return false
		}
	}
	if n := l.llvmSymbol(k); n >= 0 {
		return l.llvmNames[n] != "" || l.sameName(p, n) != 0 || yield(l.llvm.symbol(n).Name)
	}
	t, _ := l.finder.Function(p, l.o.Names)
	return l.wantName(t, yield)
}

// wantName yields a name that has not been made and is not stored as it is printed.
func (l *Looker) wantName(t resolve.Text, yield func(string) bool) bool {
	return t == 0 || l.names[t] != "" || l.finder.Demangled(t) != "" || yield(l.finder.Text(t))
}

// sameName returns the printed name stored in the tables for a place, if it is the name of symbol
// n of llvm, else 0.
func (l *Looker) sameName(p *resolve.Place, n int) resolve.Text {
	same := func(t resolve.Text) bool {
		return l.finder.Demangled(t) != "" && l.finder.Text(t) == l.llvm.symbol(n).Name
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
	return l.demangler.Name(l.llvm.symbol(n).Name)
}

func (l *Looker) setName(t resolve.Text) {
	if t == 0 || l.names[t] != "" {
		return
	}
	if l.names[t] = l.finder.Demangled(t); l.names[t] == "" {
		l.names[t] = l.demangler.Name(l.finder.Text(t))
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
	return ingest.Printable(s)
}

// llvmSymbol returns the number of the symbol that llvm-symbolizer prints for an address, −1
// if there is none.
func (l *Looker) llvmSymbol(k int) int {
	if l.llvm == nil {
		return -1
	}
	return int(l.llvmOf[k])
}
