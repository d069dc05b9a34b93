package bpfmap

import (
	"fmt"

	"symbolize/ingest/format/mapdump"
)

// infer finds the layout of keys and values without BTF, by what bpftool printed: see mapdump.Infer.
func (in *Dumps) infer(log Log) {
	first := &in.List[0].Layout
	var sources []mapdump.Source
	for _, m := range in.List {
		l := &m.Layout
		if l.Types != nil || m.program != nil || l.BigEndian || l.KeySize == 0 ||
			l.KeySize != first.KeySize || l.ValueSize != first.ValueSize {
			return
		}
		sources = append(sources, mapdump.Source{R: m.r, Size: m.size})
	}
	x, ok := mapdump.Infer(sources, first.KeySize, first.ValueSize)
	if !ok {
		return
	}
	for _, m := range in.List {
		m.Layout.Types, m.Layout.Key, m.Layout.Value = x.Types, x.Key, x.Value
	}
	if x.Note != "" {
		log.Note(fmt.Sprintf("%s: without BTF, by what bpftool printed: %s", in.List[0].Title(), x.Note))
	}
}
