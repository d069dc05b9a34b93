package diff

import (
	"fmt"
	"slices"

	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Input is a profile with the name that it is known by.
type Input struct {
	Name    string
	Profile *ingest.Profile
}

// Folded holds the profiles of two sides as stacks of the same nodes: calltree.Compare joins
// them. A node has the name of the new side, where it is there.
type Folded struct {
	New, Base []*calltree.Stacks

	sides, base []Input
}

// Sides describes both sides.
func (f *Folded) Sides() (base, sides Side) {
	return newSide(f.base, f.Base, f.New[0].Event), newSide(f.sides, f.New, f.New[0].Event)
}

// Fold adds up the profiles of both sides and matches their nodes. The event is the one of the
// options in the first new profile, and of its name in the others.
func Fold(base, sides []Input, opts calltree.Options) (*Folded, error) {
	all := slices.Concat(sides, base)
	first := all[0].Profile
	if opts.Event >= len(first.Events) {
		return nil, fmt.Errorf("%s: no samples in it", all[0].Name)
	}
	event := &first.Events[opts.Event]
	if opts.Demangler == nil {
		opts.Demangler = demangle.New(demangle.Simple)
	}
	profiles := make([]*ingest.Profile, len(all))
	stacks := make([]*calltree.Stacks, len(all))
	for i, in := range all {
		o := opts
		o.Squares = true
		o.Event = ingest.MatchEvent(in.Profile.Events, event)
		if o.Event < 0 {
			return nil, &ingest.EventError{Capture: in.Name, Event: event.Name,
				Has: eventNames(in.Profile)}
		}
		all[i].Profile = ofOneProgram(in.Profile, o.Event)
		profiles[i], stacks[i] = all[i].Profile, calltree.Fold(in.Profile, &o)
	}
	m := newMatcher(profiles)
	stacks = calltree.Unify(stacks, m.key)
	n := len(sides)
	return &Folded{New: stacks[:n], Base: stacks[n:], sides: all[:n], base: all[n:]}, nil
}

// ofOneProgram returns a profile without a main program, where an event is of several programs: the
// heaviest of them is not its subject, and not the same as that of another profile.
func ofOneProgram(p *ingest.Profile, event int) *ingest.Profile {
	if !calltree.OfPrograms(p, event) {
		return p
	}
	several := *p
	several.Meta.MainProgram = ""
	return &several
}

func eventNames(p *ingest.Profile) (names []string) {
	for i := range p.Events {
		names = append(names, texts.Printable(p.Events[i].Name))
	}
	return names
}

// Unmatched returns the names of the filters that match nothing on either side.
func (f *Folded) Unmatched() (names []string) {
	for _, name := range f.New[0].Unmatched {
		nowhere := true
		for _, s := range slices.Concat(f.New, f.Base) {
			nowhere = nowhere && slices.Contains(s.Unmatched, name)
		}
		if nowhere {
			names = append(names, name)
		}
	}
	return names
}

// OtherModes describes a profile in which the event counts in other modes of the processor than in the
// first; "" for none, and for pprof files, which do not name the modes.
func (f *Folded) OtherModes() string {
	inputs, stacks := slices.Concat(f.sides, f.base), slices.Concat(f.New, f.Base)
	first := ingest.Event{Name: stacks[0].Event}
	for i, s := range stacks {
		e := ingest.Event{Name: s.Event}
		if e.Name != "cpu" && first.Name != "cpu" && e.Modes() != first.Modes() {
			return fmt.Sprintf("%s has %s, %s has %s: samples of the kernel or of users are in one alone",
				inputs[0].Name, first.Name, inputs[i].Name, e.Name)
		}
	}
	return ""
}

// Side describes the profiles of one side.
type Side struct {
	Profiles []Described `json:"profiles"`
	Samples  uint64      `json:"samples"`
	Total    float64     `json:"total"` // median of its profiles, before they are scaled
}

// Described is a profile as the title names it.
type Described struct {
	Name        string `json:"name"`
	Host        string `json:"host,omitempty"`
	StartNanos  int64  `json:"start_unix_ns,omitempty"`
	Duration    int64  `json:"duration_ns,omitempty"`
	MainProgram string `json:"main_program,omitempty"`
	BuildID     string `json:"build_id,omitempty"` // of the main program
	Event       string `json:"event,omitempty"`    // if it is not the name of the first
	Samples     uint64 `json:"samples"`
	Total       uint64 `json:"total"`
}

func describe(in Input, s *calltree.Stacks) Described {
	m := &in.Profile.Meta
	d := Described{Name: texts.Printable(in.Name), Host: texts.Printable(m.Host),
		StartNanos: m.StartNanos, Duration: m.Duration,
		MainProgram: texts.Printable(m.MainProgram), Samples: s.Samples, Total: s.Total}
	for i := range in.Profile.Objects {
		o := &in.Profile.Objects[i]
		if m.MainProgram != "" && o.File.Path == m.MainProgram && !o.ID.IsZero() {
			d.BuildID = o.ID.String()
		}
	}
	return d
}

// totals returns the totals of the profiles, before they are scaled.
func (s *Side) totals() []float64 {
	totals := make([]float64, len(s.Profiles))
	for i := range s.Profiles {
		totals[i] = float64(s.Profiles[i].Total)
	}
	return totals
}

// newSide describes profiles that are compared by an event.
func newSide(inputs []Input, stacks []*calltree.Stacks, event string) Side {
	side := Side{}
	for i, in := range inputs {
		d := describe(in, stacks[i])
		if name := stacks[i].Event; name != event {
			d.Event = name
		}
		side.Profiles = append(side.Profiles, d)
		side.Samples += d.Samples
	}
	side.Total = median(side.totals())
	return side
}
