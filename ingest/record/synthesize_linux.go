package record

import (
	"cmp"
	"fmt"
	"slices"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/btf"
)

// synthesize writes, for each program that was there before the rings were, the records that its
// load would have given, with time 0: before everything; likewise with their times for programs
// that were there after records were lost. It also counts the functions of all.
func (p *programs) synthesize(w *perfdata.Writer, ksymbols *int) error {
	p.infos.sort()
	p.blobs.sort()
	var entry, blob []byte
	for _, e := range p.infos.entries {
		var err error
		if entry, err = p.infos.read(e, entry); err != nil {
			return err
		}
		x, err := p.decode(entry, &blob)
		if err != nil {
			p.s.warn("BPF program %d: %v", e.id, err)
			continue
		}
		p.s.summary.Functions += len(x.Funcs)
		p.describe(x)
		seen := p.seen[e.id]
		if seen == nil || seen.missing != "" {
			continue
		}
		if !seen.loaded && !seen.late {
			*ksymbols += writeProgram(w, x, 0)
		}
		for _, at := range seen.again {
			*ksymbols += writeProgram(w, x, at)
		}
	}
	missing := p.s.summary.Missing[p.missingFrom:]
	for i := range missing {
		m := &missing[i]
		if seen := p.seen[m.ID]; m.Symbol == "" && seen != nil && seen.tag != (bpf.Tag{}) {
			m.Symbol = bpf.SymbolOf(seen.tag, "")
		}
	}
	sortMissing(missing)
	return w.Err()
}

func sortMissing(list []MissingProgram) {
	slices.SortFunc(list, func(a, b MissingProgram) int { return cmp.Compare(a.ID, b.ID) })
}

// describe adds a program whose info was read, but not its code, to those missing.
func (p *programs) describe(x *bpf.Program) {
	seen, sum := p.seen[x.ID], p.s.summary
	if x.Missing == "" || seen == nil || seen.missing != "" {
		return
	}
	p.s.lost("images of BPF programs: "+x.Missing, 1)
	if len(sum.Missing) < maxMissing {
		sum.Missing = append(sum.Missing, MissingProgram{ID: x.ID, Symbol: x.Symbol(0),
			Reason: x.Missing})
	}
}

// writeProgram writes the records of a load at a time and returns how many KSYMBOLs it took. A
// function whose address is hidden has none.
func writeProgram(w *perfdata.Writer, x *bpf.Program, at uint64) int {
	n, id := 0, perfdata.SampleID{Time: at}
	for i := range x.Funcs {
		f := &x.Funcs[i]
		if f.Start == 0 {
			continue
		}
		n++
		_ = w.WriteKSymbol(&perfdata.KSymbol{Addr: uint64(f.Start), Len: f.Length,
			Kind: perfdata.KSymbolBPF, Name: []byte(x.Symbol(i))}, id)
	}
	_ = w.WriteBPFEvent(&perfdata.BPFEvent{Kind: perfdata.BPFLoad, ID: x.ID, Tag: x.Tag}, id)
	return n
}

// decode decodes an entry of BPF_PROG_INFO with its BTF, which gives functions their
// names. blob is a buffer to be used again.
func (p *programs) decode(entry []byte, blob *[]byte) (*bpf.Program, error) {
	var unread error
	x, err := bpf.DecodeProgram("bpf_prog_info", entry, bigEndian, func(id uint32) *btf.Types {
		e, ok := p.blobs.find(id)
		if !ok {
			return nil
		}
		b, err := p.blobs.read(e, *blob)
		*blob = b
		if err != nil {
			unread = err
			return nil
		}
		const head = 8 // id and size
		t, err := btf.Parse(fmt.Sprintf("BTF %d", id), b[head:], nil)
		if err != nil {
			return nil
		}
		return t
	})
	if err = cmp.Or(err, unread); err != nil {
		return nil, err
	}
	return x, nil
}
