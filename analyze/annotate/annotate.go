package annotate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/analyze/advice"
	"symbolize/analyze/demangle"
	"symbolize/analyze/disasm"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/texts"
)

// Options are for HotFunctions and New.
type Options struct {
	Event int  // which of Profile.Events
	Count bool // samples instead of weight
	// Children counts samples for the calls on their stacks too: a return address has
	// been moved back by one byte, into the call instruction.
	Children bool
	// Choose returns some of the functions with samples, in this order; nil chooses all. Only then
	// the list has inlined functions, too.
	Choose func([]HotFunction) []HotFunction
	Limit  int // how many functions are annotated, heaviest first; 0 for all
	Image  int // which image of a program is printed, from 1 for the heaviest on; 0 is 1
	Syntax disasm.Syntax
	// Access returns what the instructions of an object at offsets access, "" for nothing; nil for no
	// such texts.
	Access    func(o *ingest.Object, offsets []addr.Offset) []string
	Demangler *demangle.Demangler
}

// HotFunction is a physical function with samples, or what is inlined into one of a function.
type HotFunction struct {
	Object     ingest.ObjectID
	SystemName string
	Inlined    string      // system name of the inlined function, "" for the function itself
	Start      addr.Offset // of the first byte of the physical function in the object
	Samples    uint64
	Weight     uint64
	Places     []HotPlace // sorted by Offset
}

// HotPlace is an offset in a function with samples.
type HotPlace struct {
	Offset          uint64 // from the function's start, bytes
	Samples, Weight uint64
}

// Name returns the system name of the function, which may be inlined.
func (f *HotFunction) Name() string { return cmp.Or(f.Inlined, f.SystemName) }

// Value returns the weight, or with count the number of samples.
func (f *HotFunction) Value(count bool) uint64 {
	if count {
		return f.Samples
	}
	return f.Weight
}

// HotFunctions returns the functions that have samples of an event at their leaves (with Children:
// anywhere on the stack) and Choose chooses, heaviest first; and the sums of all samples of the event.
// Locations without a name belong to no function.
func HotFunctions(p *ingest.Profile, opts *Options) (
	list []HotFunction, total, samples uint64) {
	if p.Names == nil {
		return nil, 0, 0
	}
	c := newHotCounter(p, opts.Choose != nil)
	for i := range p.Samples {
		s := &p.Samples[i]
		if int(s.Event) != opts.Event {
			continue
		}
		total += s.Weight
		samples += s.Count
		for l := range p.Frames(s.Stack) {
			c.add(l, uint32(i)+1, s)
			if !opts.Children {
				break
			}
		}
	}
	list = c.gather()
	slices.SortFunc(list, func(a, b HotFunction) int {
		return cmp.Or(cmp.Compare(b.Value(opts.Count), a.Value(opts.Count)),
			cmp.Compare(a.SystemName, b.SystemName), cmp.Compare(a.Inlined, b.Inlined),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Start, b.Start))
	})
	if opts.Choose != nil {
		list = opts.Choose(list)
	}
	return list, total, samples
}

// FindUnnamed returns the samples of an event at leaves without a name, nil for none.
func FindUnnamed(p *ingest.Profile, opts *Options) *Unnamed {
	var u Unnamed
	var all HotFunction
	for i := range p.Samples {
		s := &p.Samples[i]
		if int(s.Event) != opts.Event {
			continue
		}
		all.Samples += s.Count
		all.Weight += s.Weight
		if s.Stack != 0 && (p.Names == nil || len(p.Names.At(p.Leaves[s.Stack])) == 0) {
			u.Samples += s.Count
			u.Weight += s.Weight
		}
	}
	if u.Samples == 0 {
		return nil
	}
	part := HotFunction{Samples: u.Samples, Weight: u.Weight}
	u.Share = sharePercent(part.Value(opts.Count), all.Value(opts.Count))
	return &u
}

// hotCounter adds up samples by location and by function.
type hotCounter struct {
	p         *ingest.Profile
	functions []HotFunction
	first     []uint32 // by location, and one more: the first of its functions in list
	list      []int32
	places    []HotPlace // by location
	// The last sample that had a location or function, plus one: recursion counts once.
	seenPlace, seenFunction []uint32
}

// hotKey identifies a HotFunction.
type hotKey struct {
	object        ingest.ObjectID
	start         addr.Offset
	name, inlined string
}

func newHotCounter(p *ingest.Profile, inlined bool) *hotCounter {
	n := len(p.Locations)
	c := &hotCounter{p: p, first: make([]uint32, n+1), places: make([]HotPlace, n),
		seenPlace: make([]uint32, n)}
	index := make(map[hotKey]int32)
	for i := range p.Locations {
		if frames := p.Names.At(ingest.LocationID(i)); len(frames) > 0 {
			loc, off := &p.Locations[i], p.Names.SymOff[i]
			last := len(frames) - 1
			key := hotKey{object: loc.Object, start: loc.Offset - addr.Offset(off),
				name: p.Names.Functions[frames[last].Func].SystemName}
			c.places[i].Offset = off
			c.join(index, key, i)
			for k := 0; inlined && k < last; k++ {
				key.inlined = p.Names.Functions[frames[k].Func].SystemName
				c.join(index, key, i)
			}
		}
		c.first[i+1] = uint32(len(c.list))
	}
	c.seenFunction = make([]uint32, len(c.functions))
	return c
}

// join adds a function to those of a location.
func (c *hotCounter) join(index map[hotKey]int32, key hotKey, location int) {
	at, ok := index[key]
	if !ok {
		at = int32(len(c.functions))
		index[key] = at
		c.functions = append(c.functions, HotFunction{Object: key.object, SystemName: key.name,
			Inlined: key.inlined, Start: key.start})
	}
	if !slices.Contains(c.list[c.first[location]:], at) { // recursive calls
		c.list = append(c.list, at)
	}
}

// of returns the functions of a location.
func (c *hotCounter) of(l ingest.LocationID) []int32 { return c.list[c.first[l]:c.first[l+1]] }

func (c *hotCounter) add(l ingest.LocationID, sample uint32, s *ingest.Sample) {
	if c.seenPlace[l] == sample {
		return
	}
	c.seenPlace[l] = sample
	c.places[l].Samples += s.Count
	c.places[l].Weight += s.Weight
	for _, n := range c.of(l) {
		if c.seenFunction[n] != sample {
			c.seenFunction[n] = sample
			c.functions[n].Samples += s.Count
			c.functions[n].Weight += s.Weight
		}
	}
}

// gather collects the places of functions, and returns the functions with samples.
func (c *hotCounter) gather() []HotFunction {
	for l := range c.places {
		if c.places[l].Samples > 0 {
			for _, n := range c.of(ingest.LocationID(l)) {
				c.functions[n].Places = append(c.functions[n].Places, c.places[l])
			}
		}
	}
	return slices.DeleteFunc(c.functions, func(f HotFunction) bool { return len(f.Places) == 0 })
}

// Code is the machine code of a function, with sources of lines, symbols and text.
type Code struct {
	Machine string  // as uname -m prints it
	PC      addr.PC // of the first byte: at run time for JITed code, as linked for files
	Bytes   []byte
	Origin  string   // where the bytes come from, for people
	Notes   []string // differences that are possible to the code at run time

	// Lines gives the source of the instructions at these offsets, which are sorted;
	// nil for none.
	Lines func(offsets []int) []CodeLine
	// Symbols names sorted addresses; nil for none.
	Symbols func(pcs []addr.PC) []CodeSymbol
	// BPF returns the BPF instructions that the code was compiled from; the error is the reason why
	// they are not known. It is nil for other code.
	BPF func() (*BPFCode, error)
	// Program identifies what the code was compiled from: images of one program, on other hosts or
	// by another kernel, have equal ones, with the same lines of source in the same order. "": this
	// is the only image.
	Program string
}

// CodeSymbol is the symbol at an address.
type CodeSymbol struct {
	Name   string // system name, "" if not known
	Offset uint64 // of the address from the symbol's start
}

// CodeLine is where an instruction comes from.
type CodeLine struct {
	File   string
	Line   uint32 // 0 if not known
	Column uint32
	Source string // text of the line, "" if not at hand
	// FileLines is the number of lines of the source file; 0 for none.
	FileLines int
	Inlined   []string // system names of the inlined calls it belongs to, outermost first
}

// CodeSource finds the code of functions. It is where annotation meets files, captures
// and stores.
type CodeSource interface {
	// Code returns the code of a function of o. The error is the reason why it cannot be
	// had, with a Hint if there is a remedy.
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
	// Skid: samples may be after the instruction that caused them.
	Skid      string     `json:"skid"`
	Functions []Function `json:"functions"`
	// Types are the types that the samples of the event access, heaviest first.
	Types   []TypeLayout `json:"types,omitempty"`
	Missing []NoCode     `json:"without_code,omitempty"`
	Left    int          `json:"functions_left_off,omitempty"` // by Limit
	// Unnamed are the samples without a name for the innermost frame.
	Unnamed *Unnamed `json:"without_name,omitempty"`
}

// Unnamed is the part without a known function.
type Unnamed struct {
	Samples uint64  `json:"samples"`
	Weight  uint64  `json:"weight"`
	Share   float64 `json:"samples_percent"` // of all samples of the event
}

// UnnamedHint is the command that lists them with the fixes.
const UnnamedHint = "`symbolize missing` lists why"

// NoCode is a function without available code.
type NoCode struct {
	Name    string  `json:"name"`
	Into    string  `json:"inlined_into,omitempty"` // the physical function of an inlined one
	Object  string  `json:"object"`
	BuildID string  `json:"build_id,omitempty"`
	Samples uint64  `json:"samples"`
	Weight  uint64  `json:"weight"`
	Share   float64 `json:"samples_percent"` // of all samples of the event
	Reason  string  `json:"reason"`
	Hint    string  `json:"hint,omitempty"`
}

// The values of Annotation.Skid.
const (
	skidPossible = "not corrected"
	skidNone     = "none: the event is precise"
)

// precise reports whether an event was recorded with two or three p after its name:
// the processor then records the instruction itself.
func precise(event string) bool {
	_, modifiers, ok := strings.Cut(event, ":")
	return ok && strings.Trim(modifiers, "ukhHGpPSD") == "" &&
		(strings.Contains(modifiers, "pp") || strings.Contains(modifiers, "P"))
}

// New annotates the functions that opts choose.
func New(p *ingest.Profile, source CodeSource, opts Options) *Annotation {
	if opts.Demangler == nil {
		opts.Demangler = demangle.New(demangle.Simple)
	}
	list, total, samples := HotFunctions(p, &opts)
	a := &Annotation{Others: advice.OtherEvents(p, opts.Event), Samples: samples, Total: total,
		Children: opts.Children, Skid: skidPossible, Functions: []Function{}}
	if opts.Event < len(p.Events) {
		a.Event = texts.Printable(p.Events[opts.Event].Name)
		a.Unit = texts.Printable(p.Events[opts.Event].Unit)
		if precise(p.Events[opts.Event].Name) {
			a.Skid = skidNone
		}
	}
	if opts.Count {
		a.Unit, a.Total = "samples", samples
	}
	if opts.Choose == nil {
		a.Unnamed = FindUnnamed(p, &opts)
	}
	groups := joinImages(p, list, source, &opts)
	for i := range groups {
		if opts.Limit > 0 && len(a.Functions) == opts.Limit {
			a.Left = len(groups) - i
			break
		}
		g := &groups[i]
		f := g.function
		o := &p.Objects[f.Object]
		code, err := g.code, error(nil)
		if code == nil {
			code, err = source.Code(o, f)
		}
		var an *annotator
		if err == nil {
			an, err = newAnnotator(f, code, &opts)
		}
		if err != nil {
			a.Missing = append(a.Missing, a.noCode(o, f, err, &opts))
			continue
		}
		an.join(g.others)
		out := an.function(o, a.Total)
		out.key = hotKey{object: f.Object, start: f.Start, name: f.SystemName, inlined: f.Inlined}
		a.Functions = append(a.Functions, out)
	}
	return a
}

// SkidPossible reports whether samples may be after the instruction that caused them.
func (a *Annotation) SkidPossible() bool { return a.Skid == skidPossible }

func (a *Annotation) noCode(o *ingest.Object, f *HotFunction, why error,
	opts *Options) NoCode {
	m := NoCode{
		Name:   opts.Demangler.Name(f.Name()),
		Object: texts.Printable(o.File.Path), BuildID: o.ID.String(),
		Samples: f.Samples, Weight: f.Weight, Share: sharePercent(f.Value(opts.Count), a.Total),
		Reason: texts.Printable(why.Error()),
	}
	if f.Inlined != "" {
		m.Into = opts.Demangler.Name(f.SystemName)
	}
	var h interface{ Hint() string }
	if errors.As(why, &h) {
		m.Hint = texts.Printable(h.Hint())
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
