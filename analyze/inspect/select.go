package inspect

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// Selector picks objects of a store by the words of a command line. A word is one of
//
//	a build ID, or so much of its beginning that only one object has it
//	a path, which has a slash: of a file, or of a directory with all files below it
//	a pattern as of the shell: with a slash for paths, in which * stops at a slash; without
//	one for the names of files and the kernel's names of BPF functions
//	any other name of a file or of a BPF function
//
// Objects are shown to it first, and then the paths of files that the store knows.
type Selector struct{ words []word }

// word is one argument.
type word struct {
	text  string
	clean string              // text as a path
	ids   map[buildid.ID]bool // that begin with it
	named map[buildid.ID]bool // objects with such a path or symbol
}

// minPrefix is how much of a build ID must be given, in digits.
const minPrefix = 4

// NewSelector returns a Selector for the words; a malformed pattern is an error.
func NewSelector(words []string) (*Selector, error) {
	s := &Selector{}
	for _, text := range words {
		if _, err := path.Match(text, ""); err != nil || text == "" {
			return nil, fmt.Errorf("%q is not a build ID, a path or a pattern", text)
		}
		clean := text
		if strings.Contains(text, "/") {
			clean, _ = filepath.Abs(text) // keeps paths that it cannot make absolute
		}
		s.words = append(s.words, word{text: text, clean: clean,
			ids: make(map[buildid.ID]bool), named: make(map[buildid.ID]bool)})
	}
	return s, nil
}

// Object shows the Selector an object.
func (s *Selector) Object(m *store.Manifest) {
	o := NewStored(m)
	for i := range s.words {
		w := &s.words[i]
		if len(w.text) >= minPrefix && strings.HasPrefix(o.BuildID, strings.ToLower(w.text)) {
			w.ids[m.ID] = true
		}
		if w.matches(o.Symbol) || slices.ContainsFunc(o.Sources, func(s StoredSource) bool {
			return w.matches(s.Path)
		}) {
			w.named[m.ID] = true
		}
	}
}

// File shows the Selector the path of a file and its object.
func (s *Selector) File(path string, id buildid.ID) {
	for i := range s.words {
		if s.words[i].matches(path) {
			s.words[i].named[id] = true
		}
	}
}

// matches reports whether the word names a path or symbol.
func (w *word) matches(name string) bool {
	if name == "" {
		return false
	}
	if !strings.Contains(w.text, "/") {
		ok, _ := path.Match(w.text, path.Base(name))
		return ok
	}
	if strings.HasPrefix(name, strings.TrimSuffix(w.clean, "/")+"/") {
		return true
	}
	ok, _ := path.Match(w.clean, name)
	return ok
}

// Selected returns the selected objects. A word that selects nothing is an error, and so are the
// beginning of several build IDs and one that is also the name of another object.
func (s *Selector) Selected() (map[buildid.ID]bool, error) {
	all := make(map[buildid.ID]bool)
	for i := range s.words {
		found, err := s.words[i].objects()
		if err != nil {
			return nil, err
		}
		maps.Copy(all, found)
	}
	return all, nil
}

func (w *word) objects() (map[buildid.ID]bool, error) {
	for id := range w.ids {
		if id.String() == strings.ToLower(w.text) {
			return map[buildid.ID]bool{id: true}, nil
		}
	}
	ids := slices.SortedFunc(maps.Keys(w.ids), buildid.ID.Compare)
	switch {
	case len(ids) > 1:
		return nil, texts.WithHint(fmt.Errorf("%d objects begin with %s", len(ids), w.text),
			"the first two are %s and %s", ids[0], ids[1])
	case len(ids) == 1 && len(w.named) > 0 && !maps.Equal(w.ids, w.named):
		return nil, texts.WithHint(
			fmt.Errorf("%s is a name, and the beginning of %s", w.text, ids[0]),
			"name it by its path, or by more of the build ID")
	case len(ids)+len(w.named) == 0:
		return nil, texts.WithHint(fmt.Errorf("no object %s in the store", w.text),
			"`symbolize store ls` lists them")
	case len(ids) == 1:
		return w.ids, nil
	}
	return w.named, nil
}
