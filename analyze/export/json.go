package export

import (
	"bufio"
	"fmt"
	"io"

	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// JSONLocation is one line of JSON for a location. Its fields are named as in the output of
// llvm-symbolizer --output-style=JSON, with BuildID added.
type JSONLocation struct {
	Location   int          // number of the location, which JSONSample.Stack refers to
	Address    string       // offset in the object, "0x1f3"
	ModuleName string       // path as recorded
	BuildID    string       `json:",omitempty"`
	Kind       string       // "elf", "vdso", "kernel", "module", "jit" …
	Symbol     []JSONSymbol `json:",omitempty"` // innermost inlined call first
	Error      *JSONError   `json:",omitempty"` // if unresolved
}

// JSONSymbol is one frame.
type JSONSymbol struct {
	FunctionName string // demangled
	LinkageName  string `json:",omitempty"` // if it differs
	FileName     string `json:",omitempty"`
	Line         int32  `json:",omitempty"`
	Column       int32  `json:",omitempty"`
	StartLine    int32  `json:",omitempty"`
	// StartAddress is the offset at which the function begins, "" where not known.
	StartAddress string `json:",omitempty"`
	Inlined      bool   `json:",omitempty"`
}

// JSONError is why a location has no name.
type JSONError struct {
	Message string // text of an ingest.Reason
}

// JSONSample is one line of JSON for all samples with one stack and equal labels.
type JSONSample struct {
	Event string
	Comm  string
	PID   *int32 `json:",omitempty"`
	TID   *int32 `json:",omitempty"`
	CPU   *int32 `json:",omitempty"`
	// Labels are the tags of --labels, by key.
	Labels map[string]string `json:",omitempty"`
	Count  uint64            // samples
	Weight uint64            // sum of their periods
	Unit   string            // of Weight
	Stack  []ingest.LocationID
}

// JSON writes a profile as JSON, one object a line: first every location (JSONLocation), then every
// folded sample (JSONSample) with location numbers in Stack, leaf first. Locations have the
// key "Location", samples the key "Stack".
func JSON(w io.Writer, p *ingest.Profile, d *demangle.Demangler) error {
	if d == nil {
		d = demangle.New(demangle.Full)
	}
	d.Warm(p)
	out := bufio.NewWriterSize(w, 64<<10)
	enc := texts.NewJSONEncoder(out)
	for l := range p.Locations {
		if err := enc.Encode(jsonLocation(p, ingest.LocationID(l), d)); err != nil {
			return err
		}
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		ev := &p.Events[s.Event]
		line := JSONSample{
			Event: texts.Printable(ev.Name), Comm: texts.Printable(p.Strings[s.Comm]),
			PID: known(&s.PID), TID: known(&s.TID), CPU: known(&s.CPU),
			Count: s.Count, Weight: s.Weight, Unit: texts.Printable(ev.Unit),
			Stack: p.Stack([]ingest.LocationID{}, s.Stack),
		}
		if s.Tags != 0 {
			line.Labels = make(map[string]string)
			for t := range p.AllTags(s) {
				line.Labels[texts.Printable(t.Key)] = texts.Printable(p.Tag(s, t.Key))
			}
		}
		if err := enc.Encode(&line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// known leaves out labels that folding has left out.
func known(v *int32) *int32 {
	if *v < 0 {
		return nil
	}
	return v
}

func jsonLocation(p *ingest.Profile, l ingest.LocationID, d *demangle.Demangler) *JSONLocation {
	loc := &p.Locations[l]
	o := &p.Objects[loc.Object]
	line := &JSONLocation{
		Location: int(l), Address: fmt.Sprintf("%#x", uint64(loc.Offset)),
		ModuleName: texts.Printable(o.File.Path), BuildID: o.ID.String(), Kind: o.Kind.String(),
	}
	if p.Names == nil {
		line.Error = &JSONError{Message: ingest.NotIndexed.String()}
		return line
	}
	frames := p.Names.At(l)
	if len(frames) == 0 {
		line.Error = &JSONError{Message: p.Names.Reasons[l].String()}
		return line
	}
	for _, f := range frames {
		fn := &p.Names.Functions[f.Func]
		sym := JSONSymbol{
			FunctionName: d.Name(fn.SystemName), FileName: texts.Printable(fn.File), Line: f.Line,
			Column: f.Column, StartLine: fn.StartLine, Inlined: f.Inlined,
		}
		if system := texts.Printable(fn.SystemName); system != sym.FunctionName {
			sym.LinkageName = system
		}
		off := p.Names.SymOff[l]
		known := off > 0 || !p.Stats.NoStarts // pprof files have no starts of functions
		if !f.Inlined && known && off <= uint64(loc.Offset) {
			sym.StartAddress = fmt.Sprintf("%#x", uint64(loc.Offset)-off)
		}
		line.Symbol = append(line.Symbol, sym)
	}
	return line
}
