package filter

import (
	"strings"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/texts"
)

// machines are the machines with a BPF JIT, named as by uname -m. Text does not name the machine.
var machines = machine.JITs()

// locateBPF is locate for "bpf_prog_TAG_NAME+0xOFF/0xLEN", for its shorter forms, and
// for "bpf_prog_TAG".
func (f *finder) locateBPF(p *place, a *answer) (*object, addr.Addr, ingest.Reason) {
	symbol := string(p.symbol)
	if p.form == formBPF {
		if p.length && p.offset > p.size {
			return nil, 0, ingest.OutsideObject
		}
		var found *object
		for _, name := range machines {
			known := f.object(bpf.SymbolIdentity(name, symbol, p.size))
			o := f.probable(known)
			if o == nil || o == found {
				continue
			}
			a.probable = o != known
			if found != nil {
				return nil, 0, ingest.Ambiguous
			}
			found = o
		}
		if found != nil {
			return found, addr.Site(addr.Addr(p.offset), p.isReturn()), ingest.ReasonNone
		}
	}
	return nil, 0, f.declare(symbol, nil, a)
}

// declare answers a BPF program known by its tag, its name if any, and the objects that it may be.
func (f *finder) declare(symbol string, others []buildid.ID, a *answer) ingest.Reason {
	d, err := resolve.Declare(f.view, symbol, others)
	if err == nil && d == (resolve.Declared{}) {
		d, err = resolve.DeclareByName(f.view, symbol)
	}
	if err != nil {
		f.addProblem(symbol + ": " + err.Error())
	}
	a.otherTag = d.OtherTag
	switch {
	case d.Several:
		return ingest.Ambiguous
	case d.Name == "":
		return ingest.ImageNotCaptured
	}
	a.declared(symbol, &d)
	switch {
	case !a.empty():
		a.probable = a.probable || d.Probable
		return ingest.ReasonNone
	case d.Differ:
		return ingest.Ambiguous
	}
	a.lineless = true
	return ingest.Stripped // only the name in the text is known
}

// declared adds the line where a BPF function is defined, and the name if the text lacks it.
func (a *answer) declared(symbol string, d *resolve.Declared) {
	_, name, _ := bpf.SplitSymbol(symbol)
	a.name = restOf(symbol, d.Complete(symbol))
	if name == "" {
		a.name = "_" + texts.Printable(d.Name)
	}
	if d.File != "" {
		a.source = "defined at " + fileLine(d.File, d.Line)
		if d.Probable {
			a.source = "probably " + a.source
		}
	}
	if name != "" && bpf.NameOf(name) == "" { // the kernel gives this name to all of them
		a.source = strings.TrimSuffix(texts.Printable(d.Name)+", "+a.source, ", ")
	}
}

// restOf returns the rest of a name that the kernel has cut, by the symbol with the whole name.
func restOf(symbol, whole string) string {
	if _, name, _ := bpf.SplitSymbol(symbol); bpf.NameOf(name) == "" {
		return "" // it has another name
	}
	return texts.Printable(strings.TrimPrefix(whole, symbol))
}

// probable returns the only object with lines that an object known by its symbol may be, else the
// object itself. It is nil if there are several, or none.
func (f *finder) probable(o *object) *object {
	m := o.manifest
	if m == nil || m.Kind != ingest.JIT {
		return nil
	}
	var lined []*object
	for _, id := range m.Probable {
		if p := f.object(id); p.hasImage() {
			lined = append(lined, p)
		}
	}
	switch {
	case len(lined) == 1:
		return lined[0]
	case o.hasImage():
		return o
	}
	return nil
}

// hasImage reports whether an object is a function and not an alias.
func (o *object) hasImage() bool {
	return o.manifest != nil && len(o.manifest.Sources) > 0 &&
		o.manifest.Sources[0].Kind.PerLoad()
}

// lineless answers a place in a known function without lines: the line of its definition may be
// known by its tag, or by its name and number of instructions.
func (f *finder) lineless(o *object, q *asked) {
	a := q.answer
	a.reason = f.declare(string(q.place.symbol), o.manifest.Probable, a)
	if a.reason == ingest.ImageNotCaptured {
		a.reason = ingest.Stripped
	}
}
