package resolve

import (
	"cmp"
	"slices"

	"symbolize/store/symtab"
)

// UseDemangled makes Joins read the names that tables have demangled by the
// symtab.Demangler of that ID, for Demangled. It must be called before the first Join.
func (f *Finder) UseDemangled(id string) {
	f.shownBy, f.shown = id, make([]string, 1)
}

// UsesDemangled reports whether UseDemangled was called.
func (f *Finder) UsesDemangled() bool { return f.shownBy != "" }

// Demangled returns the text of a name as its table has it demangled; "" if it has not.
func (f *Finder) Demangled(t Text) string {
	if int(t) >= len(f.shown) {
		return ""
	}
	return f.shown[t]
}

// textSet has the names, or the paths, of a table that Joins have found.
type textSet[N ~uint32] struct {
	texts []Text // by number, plus one; 0 for those not found so far
	fresh []N    // the ones to be read
}

// text returns the Text of a name or path, to be read by readTexts. NoName and NoFile have 0.
func (s *textSet[N]) text(f *Finder, n N) Text {
	if uint64(n) >= uint64(len(s.texts)) {
		return 0
	}
	if s.texts[n] == 0 {
		s.fresh = append(s.fresh, n)
		f.texts = append(f.texts, "")
		s.texts[n] = Text(len(f.texts))
	}
	return s.texts[n] - 1
}

// read reads the fresh texts, in the order of the table.
func (s *textSet[N]) read(f *Finder, get func(N) (string, error)) (first error) {
	slices.Sort(s.fresh)
	for _, n := range s.fresh {
		text, err := get(n)
		f.texts[s.texts[n]-1] = text
		if err != nil {
			s.texts[n] = 0 // the next batch tries, and fails, again
			first = cmp.Or(first, err)
		}
	}
	s.fresh = s.fresh[:0]
	return first
}

// drop leaves to be read only the texts that keep accepts; the others get other Texts when they
// are found again.
func (s *textSet[N]) drop(keep func(Text) bool) {
	s.fresh = slices.DeleteFunc(s.fresh, func(n N) bool {
		if keep(s.texts[n] - 1) {
			return false
		}
		s.texts[n] = 0
		return true
	})
}

// readTexts reads the texts that a table's answers were the first to use, in the order of the file:
// names of inlined functions are spread over all of it, and each block of strings is to be unpacked
// once.
func (f *Finder) readTexts(l *layer) error {
	demangled := f.shownBy != "" && l.table.DemangledBy() == f.shownBy
	if demangled {
		f.shown = append(f.shown, make([]string, len(f.texts)-len(f.shown))...)
	}
	err := l.names.read(f, func(n symtab.NameID) (string, error) {
		text, err := l.table.Name(n)
		if err == nil && demangled {
			f.shown[l.names.texts[n]-1], err = l.table.Demangled(n)
		}
		return text, err
	})
	return cmp.Or(err, l.files.read(f, l.table.File))
}

// forget removes names that could not be read.
func (f *Finder) forget() {
	for i := range f.frames {
		fr := &f.frames[i]
		for _, t := range []*Text{&fr.Name, &fr.File, &fr.DeclFile} {
			if f.texts[*t] == "" {
				*t = 0
			}
		}
	}
	for i := range f.places {
		if p := &f.places[i]; f.texts[p.Symbol] == "" {
			p.Symbol = 0
		}
	}
}
