package filter

import (
	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/bpf"
	"symbolize/store"
)

// machines are the names, as uname -m gives them, of those that the kernel JITs BPF for.
// Text does not say which one it is from.
var machines = [...]string{"x86_64", "aarch64", "s390x", "ppc64le", "riscv64", "loongarch64",
	"ppc64", "mips64", "sparc64", "i686", "armv7l", "aarch64_be"}

// locateBPF is locate for "bpf_prog_TAG_NAME+0xOFF/0xLEN", for what it lacks of that, and
// for "bpf_prog_TAG".
func (f *finder) locateBPF(p *place, a *answer) (*object, addr.Addr, ingest.Reason) {
	symbol := string(p.symbol)
	if p.form == formBPF {
		if p.length && p.offset > p.size {
			return nil, 0, ingest.OutsideObject
		}
		var found *object
		for _, machine := range machines {
			known := f.object(bpf.SymbolIdentity(machine, symbol, p.size))
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
			at := addr.Addr(p.offset)
			if !p.exact && at > 0 {
				at--
			}
			return found, at, ingest.ReasonNone
		}
	}
	return nil, 0, f.declare(symbol, a)
}

// declare answers a BPF program of which only the tag is known here, and perhaps the name.
func (f *finder) declare(symbol string, a *answer) ingest.Reason {
	d, err := resolve.Declare(f.view, symbol, nil)
	if err != nil {
		f.say(symbol + ": " + err.Error())
	}
	switch {
	case d.Several:
		return ingest.Ambiguous
	case d.Name == "":
		return ingest.ImageNotCaptured
	}
	if _, name, _ := bpf.SplitSymbol(symbol); name == "" {
		a.name = "_" + ingest.Printable(d.Name)
	}
	if d.File != "" {
		a.source = "defined at " + fileLine(d.File, d.Line)
	}
	return ingest.ReasonNone
}

// probable returns the object with lines that an object known by its symbol is, or
// probably is; nil if there is none, or more than one.
func (f *finder) probable(o *object) *object {
	if o.manifest == nil || len(o.manifest.Probable) == 0 {
		if o.manifest == nil || len(o.manifest.Sources) == 0 {
			return nil
		}
		return o
	}
	if len(o.manifest.Probable) != 1 || o.manifest.Kind != ingest.JIT {
		return nil
	}
	o = f.object(o.manifest.Probable[0])
	if o.manifest == nil || len(o.manifest.Sources) == 0 || o.manifest.Sources[0].Kind != store.JIT {
		return nil
	}
	return o
}
