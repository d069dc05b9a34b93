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

// Demangled returns the text of a name as its table has it demangled; "" if it has not.
func (f *Finder) Demangled(t Text) string {
	if int(t) >= len(f.shown) {
		return ""
	}
	return f.shown[t]
}

// name returns the Text of a name of a table, to be read by readTexts.
func (f *Finder) name(l *layer, n symtab.NameID) Text {
	if uint64(n) >= uint64(len(l.names)) {
		return 0 // NoName
	}
	if l.names[n] == 0 {
		l.newNames = append(l.newNames, n)
		l.names[n] = f.newText()
	}
	return l.names[n] - 1
}

// file is name for a path.
func (f *Finder) file(l *layer, n symtab.FileID) Text {
	if uint64(n) >= uint64(len(l.files)) {
		return 0 // NoFile
	}
	if l.files[n] == 0 {
		l.newFiles = append(l.newFiles, n)
		l.files[n] = f.newText()
	}
	return l.files[n] - 1
}

// newText makes place for a text and returns its number plus one.
func (f *Finder) newText() Text {
	f.texts = append(f.texts, "")
	return Text(len(f.texts))
}

// keepNew leaves the names that are wanted, by Text, to be read; the others get other Texts when
// they come again, and so do paths.
func (l *layer) keepNew(wanted []bool) {
	list := l.newNames[:0]
	for _, n := range l.newNames {
		if wanted[l.names[n]-1] {
			list = append(list, n)
		} else {
			l.names[n] = 0
		}
	}
	for _, n := range l.newFiles {
		l.files[n] = 0
	}
	l.newNames, l.newFiles = list, l.newFiles[:0]
}

// readTexts reads the texts that a table's answers were the first to use, in the order of the file:
// names of inlined functions are spread over all of it, and each block of strings is to be unpacked
// once.
func (f *Finder) readTexts(l *layer) error {
	var first error
	demangled := f.shownBy != "" && l.table.DemangledBy() == f.shownBy
	if demangled {
		f.shown = append(f.shown, make([]string, len(f.texts)-len(f.shown))...)
	}
	slices.Sort(l.newNames)
	for _, n := range l.newNames {
		s, err := l.table.Name(n)
		f.texts[l.names[n]-1] = s
		if err == nil && demangled {
			f.shown[l.names[n]-1], err = l.table.Demangled(n)
		}
		if err != nil {
			l.names[n] = 0 // the next batch tries, and fails, again
			first = cmp.Or(first, err)
		}
	}
	slices.Sort(l.newFiles)
	for _, n := range l.newFiles {
		s, err := l.table.File(n)
		f.texts[l.files[n]-1] = s
		if err != nil {
			l.files[n] = 0
			first = cmp.Or(first, err)
		}
	}
	l.newNames, l.newFiles = l.newNames[:0], l.newFiles[:0]
	return first
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
