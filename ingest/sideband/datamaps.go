package sideband

import "symbolize/ingest/addrspace"

// dataMaps makes State.Data. Its mappings are as they were recorded: code that was named otherwise, by lists of
// run-time compilers, is memory here.
type dataMaps struct{ b *addrspace.Builder } // nil if it is not wanted

// change applies a change of a process.
func (d dataMaps) change(e *change, m addrspace.Mapping) {
	if d.b == nil {
		return
	}
	switch e.kind {
	case changeMapping, changeDataMapping:
		d.b.Map(e.time, e.pid, m)
	case changeName:
		d.b.Comm(e.time, e.pid, e.tid, e.ref, e.flag)
	case changeFork:
		d.b.Fork(e.time, e.pid, e.tid, int32(e.a), int32(e.b), e.flag)
	}
}

func (d dataMaps) build() *addrspace.Map {
	if d.b == nil {
		return nil
	}
	return d.b.Build()
}
