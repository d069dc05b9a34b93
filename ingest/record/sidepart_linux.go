package record

import (
	"errors"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
)

// sidePart is the side band of a part of the recording.
type sidePart struct {
	out      *perfOut
	programs *programs
	symbols  map[symbolKey]bool
	ksymbols int
	first    bool // of its bundle: it has the initial state, too
}

// cutPart returns the side band since the last cut, with all records up to now. With again the
// next one begins a bundle, for which the programs that are there are read once more.
func (x *sideband) cutPart(again bool) (part *sidePart, err error) {
	done := make(chan struct{})
	x.requests <- func() {
		defer close(done)
		part, err = x.split(again)
	}
	x.ask()
	select {
	case <-done:
	case <-x.done:
		select {
		case <-done:
		default:
			err = errors.New("the rings are not read any more")
		}
	}
	return part, err
}

// split is cutPart, in the loop.
func (x *sideband) split(again bool) (*sidePart, error) {
	x.drainRings()
	out, err := newPerfOut(x.ids, x.s.opts.Stacks != nil)
	if err != nil {
		return nil, err
	}
	programs, err := x.programs.cut(x.copies != nil)
	if err != nil {
		out.close()
		return nil, err
	}
	part := &sidePart{out: x.out, programs: programs, symbols: x.symbols, ksymbols: x.ksymbols,
		first: x.first}
	x.out, x.ksymbols, x.first = out, 0, again
	if !again {
		x.symbols = make(map[symbolKey]bool)
		return part, nil
	}
	// Data of this part is in the next bundle as well, from which it is carried over.
	x.programs.written = make(map[uint32]bool)
	for id, p := range programs.seen {
		x.programs.written[id] = p.missing == ""
	}
	x.programs.btfs = make(map[uint32]bool)
	for _, e := range programs.blobs.entries {
		x.programs.btfs[e.id] = true
	}
	x.symbols = make(map[symbolKey]bool)
	for key := range part.symbols {
		x.symbols[key] = true
	}
	x.readPresent()
	x.programs.written = nil
	return part, nil
}

// addPart writes the records that perf synthesizes for the initial state, and adds perf.data.
func (x *sideband) addPart(w *bundle.Writer, part *sidePart) error {
	if err := x.copies.fill(part.programs); err != nil {
		return err
	}
	if x.series != nil {
		x.series.addBTF(part.programs)
	}
	part.programs.finish()
	if part.first {
		part.out.kernelMap(&x.kernel.facts)
		x.kernel.images(part.imageThere)
	}
	if err := part.programs.synthesize(part.out.w, &part.ksymbols); err != nil {
		return err
	}
	x.s.summary.KSymbols += part.ksymbols
	if err := part.out.finish(x.s, part.programs); err != nil {
		return err
	}
	return part.out.addTo(w)
}

// imageThere writes a KSYMBOL record for a trampoline or dispatcher that is in kallsyms, and in no
// record: it was there before. The kernel reports 4,096 bytes for each.
func (p *sidePart) imageThere(pc uint64, name string) {
	const imageLen = 4096
	if p.symbols[symbolKey{pc, name}] {
		return
	}
	p.ksymbols++
	_ = p.out.w.WriteKSymbol(&perfdata.KSymbol{Addr: pc, Len: imageLen, Kind: perfdata.KSymbolBPF,
		Name: []byte(name)}, perfdata.SampleID{})
}

func (p *sidePart) close() {
	p.out.close()
	p.programs.close()
}
