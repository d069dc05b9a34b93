package filter

import (
	"cmp"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Stats counts places in text.
type Stats struct {
	Places uint64 // recognized places
	Named  uint64 // places with an answer
	// Probable counts places of Named where the text only has tag, name and length of a BPF
	// function, and one known function fits.
	Probable uint64
	// ByFile counts places of Named with a file name in place of a build ID.
	ByFile uint64
	// LateMaps: mappings of a process follow its addresses in the text, and were not used.
	LateMaps bool
	// Left counts unnamed places by object and reason.
	Left []Left
	more map[leftKey]int
}

// Left counts the unnamed places of one object for one reason.
type Left struct {
	Object string // build ID, or the BPF program's symbol; "" if the text names none
	Module string // its name in the text, "" for none
	Reason ingest.Reason
	// OtherTag: the indexed BPF program of this name has another tag.
	OtherTag bool
	File     bool // Object is the name of a file: the text has no build ID
	Lineless bool // the indexed BPF program has no lines
	LateMaps bool // Stats.LateMaps
	Places   uint64
}

type leftKey struct {
	object string
	reason ingest.Reason
}

// maxLeft bounds Stats.Left; the Object "others" has the rest.
const maxLeft = 1000

// leave counts an unnamed place.
func (s *Stats) leave(p *place, a *answer) {
	key := leftKey{p.objectText(), a.reason}
	i, ok := s.more[key]
	if !ok && len(s.more) >= maxLeft {
		key.object = "others"
		i, ok = s.more[key]
	}
	if !ok {
		if s.more == nil {
			s.more = make(map[leftKey]int)
		}
		i = len(s.Left)
		s.more[key] = i
		s.Left = append(s.Left, Left{Object: key.object, Module: string(p.module),
			Reason: a.reason, OtherTag: a.otherTag, Lineless: a.lineless,
			File: len(p.file) > 0 && p.buildID().IsZero()})
	}
	s.Left[i].Places++
}

// objectText is the printed name of a place's object.
func (p *place) objectText() string {
	switch {
	case p.form == formBPF || p.form == formTag:
		return string(p.symbol)
	case len(p.id) > 0:
		return strings.ToLower(string(p.id))
	case p.object.IsZero() && len(p.file) > 0:
		return texts.Printable(string(p.file))
	}
	return p.object.String()
}

// Sorted returns Left, the most frequent first.
func (s *Stats) Sorted() []Left {
	list := slices.SortedFunc(slices.Values(s.Left), func(a, b Left) int {
		return cmp.Or(cmp.Compare(b.Places, a.Places), cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Reason, b.Reason))
	})
	for i := range list {
		list[i].LateMaps = s.LateMaps
	}
	return list
}

// Facts are Stats as data. The JSON names are an interface.
type Facts struct {
	Places   uint64 `json:"places"`
	Named    uint64 `json:"named"`
	Probable uint64 `json:"probable"` // of named
	ByFile   uint64 `json:"by_file"`  // of named
	Left     []Rest `json:"left"`     // most places first
}

// Rest is Left as data.
type Rest struct {
	Object string `json:"object,omitempty"`
	Module string `json:"module,omitempty"`
	Reason string `json:"reason"`
	Places uint64 `json:"places"`
	Hint   string `json:"hint,omitempty"`
}

// Facts returns the counts as data.
func (s *Stats) Facts() *Facts {
	f := &Facts{Places: s.Places, Named: s.Named, Probable: s.Probable, ByFile: s.ByFile,
		Left: []Rest{}}
	for _, l := range s.Sorted() {
		f.Left = append(f.Left, Rest{Object: l.Object, Module: l.Module, Reason: l.Reason.String(),
			Places: l.Places, Hint: strings.TrimSpace(l.Hint())})
	}
	return f
}
