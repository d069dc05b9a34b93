package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/analyze/disasm"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// AnnotateOptions are for HotFunctions and NewAnnotation.
type AnnotateOptions struct {
	Event int  // which of Profile.Events
	Count bool // samples instead of weight
	// Children counts samples for the calls on their stacks too: a return address has
	// been moved back by one, and so lies in the call instruction.
	Children bool
	// Match chooses functions; nil takes all.
	Match     func(*HotFunction) bool
	Limit     int // how many functions are annotated, heaviest first; 0 for all
	Syntax    disasm.Syntax
	Demangler *Demangler
}

// HotFunction is a physical function that samples lie in.
type HotFunction struct {
	Object     ingest.ObjectID
	SystemName string
	Start      addr.Offset // of its first byte in the object
	Samples    uint64
	Weight     uint64
	Places     []HotPlace // sorted by Offset
}

// HotPlace is where in a function samples lie.
type HotPlace struct {
	Offset          uint64 // from the function's start, bytes
	Samples, Weight uint64
}

// value is what a function is ordered by.
func (f *HotFunction) value(count bool) uint64 {
	if count {
		return f.Samples
	}
	return f.Weight
}

// HotFunctions returns the functions that have samples of an event at their leaves
// (with Children: anywhere on the stack), heaviest first, those that Match chooses; and
// the sums of all samples of the event. Locations without a name belong to no function.
func HotFunctions(p *ingest.Profile, opts *AnnotateOptions) (list []HotFunction, total, samples uint64) {
	if p.Names == nil {
		return nil, 0, 0
	}
	c := hotCounter{p: p, samples: make([]uint64, len(p.Locations)),
		weight: make([]uint64, len(p.Locations)), seen: make([]uint32, len(p.Locations))}
	for i := range p.Samples {
		s := &p.Samples[i]
		if int(s.Event) != opts.Event {
			continue
		}
		total += s.Weight
		samples += s.Count
		locs := p.Stack(s.Stack)
		if !opts.Children {
			locs = locs[:min(1, len(locs))]
		}
		for _, l := range locs {
			c.add(l, uint32(i)+1, s)
		}
	}
	list = slices.DeleteFunc(c.functions(), func(f HotFunction) bool {
		return opts.Match != nil && !opts.Match(&f)
	})
	slices.SortFunc(list, func(a, b HotFunction) int {
		return cmp.Or(cmp.Compare(b.value(opts.Count), a.value(opts.Count)),
			cmp.Compare(a.SystemName, b.SystemName), cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Start, b.Start))
	})
	return list, total, samples
}

// hotCounter adds up samples by location.
type hotCounter struct {
	p               *ingest.Profile
	samples, weight []uint64
	seen            []uint32 // number of the last sample that had it, plus one
}

func (c *hotCounter) add(l ingest.LocationID, sample uint32, s *ingest.Sample) {
	if c.seen[l] == sample { // recursion counts once
		return
	}
	c.seen[l] = sample
	c.samples[l] += s.Count
	c.weight[l] += s.Weight
}

// functions gathers the locations by function.
func (c *hotCounter) functions() []HotFunction {
	type key struct {
		object ingest.ObjectID
		start  addr.Offset
		name   string
	}
	var list []HotFunction
	index := make(map[key]int)
	n := c.p.Names
	for i := range c.p.Locations {
		l := ingest.LocationID(i)
		frames := n.At(l)
		if c.samples[i] == 0 || len(frames) == 0 {
			continue
		}
		loc := &c.p.Locations[i]
		k := key{loc.Object, loc.Offset - addr.Offset(n.SymOff[i]),
			n.Functions[frames[len(frames)-1].Func].SystemName}
		at, ok := index[k]
		if !ok {
			at = len(list)
			index[k] = at
			list = append(list, HotFunction{Object: k.object, SystemName: k.name, Start: k.start})
		}
		f := &list[at]
		f.Samples += c.samples[i]
		f.Weight += c.weight[i]
		f.Places = append(f.Places, HotPlace{n.SymOff[i], c.samples[i], c.weight[i]})
	}
	return list
}

// Code is the machine code of a function, and who knows more of it.
type Code struct {
	Machine string  // as uname -m says it
	PC      addr.PC // of the first byte: at run time for JITed code, as linked for files
	Bytes   []byte
	Origin  string   // where the bytes come from, for people
	Notes   []string // what of them may not be as it was at run time

	// Lines gives the source of the instructions at these offsets, which are sorted;
	// nil where nothing knows.
	Lines func(offsets []int) []CodeLine
	// Symbols names addresses, which are sorted; nil where nothing knows.
	Symbols func(pcs []addr.PC) []CodeSymbol
}

// CodeSymbol is what lies at an address.
type CodeSymbol struct {
	Name   string // system name, "" if not known
	Offset uint64 // of the address from the symbol's start
}

// CodeLine is where an instruction comes from.
type CodeLine struct {
	File    string
	Line    uint32 // 0 if not known
	Column  uint32
	Source  string   // text of the line, "" if not at hand
	Inlined []string // system names of the inlined calls it belongs to, outermost first
}

// CodeSource finds the code of functions. It is where annotation meets files, captures
// and stores.
type CodeSource interface {
	// Code returns the code of a function of o. The error is the reason why it cannot be
	// had, with a Hint if something mends it.
	Code(o *ingest.Object, f *HotFunction) (*Code, error)
}

// Annotation is the code of functions with the samples of one event.
type Annotation struct {
	Event    string   `json:"event"`
	Unit     string   `json:"unit"`
	Others   []string `json:"other_events,omitempty"`
	Total    uint64   `json:"total"`
	Samples  uint64   `json:"samples"`
	Children bool     `json:"children"`
	// Skid says whether samples may lie behind the instruction that caused them.
	Skid      string              `json:"skid"`
	Functions []AnnotatedFunction `json:"functions"`
	Missing   []NoCode            `json:"without_code,omitempty"`
	Left      int                 `json:"functions_left_off,omitempty"` // by Limit
}

// NoCode is a function whose code could not be had.
type NoCode struct {
	Name    string  `json:"name"`
	Object  string  `json:"object"`
	BuildID string  `json:"build_id,omitempty"`
	Samples uint64  `json:"samples"`
	Weight  uint64  `json:"weight"`
	Share   float64 `json:"share_percent"` // of all samples of the event
	Reason  string  `json:"reason"`
	Hint    string  `json:"hint,omitempty"`
}

// The values of Annotation.Skid.
const (
	skidPossible = "not corrected"
	skidNone     = "none: the event is precise"
)

// precise reports whether an event was recorded with two or three p behind its name:
// the processor then tells the instruction itself.
func precise(event string) bool {
	_, modifiers, ok := strings.Cut(event, ":")
	return ok && strings.Trim(modifiers, "ukhHGpPSD") == "" &&
		(strings.Contains(modifiers, "pp") || strings.Contains(modifiers, "P"))
}

// NewAnnotation annotates the functions that opts choose.
func NewAnnotation(p *ingest.Profile, source CodeSource, opts AnnotateOptions) *Annotation {
	if opts.Demangler == nil {
		opts.Demangler = NewDemangler(Simple)
	}
	list, total, samples := HotFunctions(p, &opts)
	a := &Annotation{Others: OtherEvents(p, opts.Event), Samples: samples, Total: total,
		Children: opts.Children, Skid: skidPossible, Functions: []AnnotatedFunction{}}
	if opts.Event < len(p.Events) {
		a.Event = ingest.Printable(p.Events[opts.Event].Name)
		a.Unit = ingest.Printable(p.Events[opts.Event].Unit)
		if precise(p.Events[opts.Event].Name) {
			a.Skid = skidNone
		}
	}
	if opts.Count {
		a.Unit, a.Total = "samples", samples
	}
	for i := range list {
		if opts.Limit > 0 && len(a.Functions) == opts.Limit {
			a.Left = len(list) - i
			break
		}
		f := &list[i]
		o := &p.Objects[f.Object]
		code, err := source.Code(o, f)
		var an *annotator
		if err == nil {
			an, err = newAnnotator(f, code, &opts)
		}
		if err != nil {
			a.Missing = append(a.Missing, a.noCode(o, f, err, &opts))
			continue
		}
		a.Functions = append(a.Functions, an.function(o, a.Total))
	}
	return a
}

func (a *Annotation) noCode(o *ingest.Object, f *HotFunction, why error, opts *AnnotateOptions) NoCode {
	m := NoCode{
		Name:   opts.Demangler.Name(f.SystemName),
		Object: ingest.Printable(o.File.Path), BuildID: o.ID.String(),
		Samples: f.Samples, Weight: f.Weight, Share: sharePercent(f.value(opts.Count), a.Total),
		Reason: ingest.Printable(why.Error()),
	}
	var h interface{ Hint() string }
	if errors.As(why, &h) {
		m.Hint = ingest.Printable(h.Hint())
	}
	return m
}

// sharePercent is part of all in percent.
func sharePercent(part, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(part) / float64(all)
}

// hexAddress is an address as JSON and people have it: 64 bits are too many for a
// number in JSON.
func hexAddress(pc addr.PC) string { return fmt.Sprintf("0x%x", uint64(pc)) }
