package perfdata

import "fmt"

// The records below are those that perf synthesizes for the state before the recording
// (tools/perf/util/synthetic-events.c, bpf-event.c). id becomes the trailer; the zero SampleID is
// before everything, as perf writes it.

// finish pads the record in b, adds the trailer and writes it.
func (x *Writer) finish(b []byte, id SampleID) error {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	b = x.appendTrailer(b, id)
	x.scratch = b
	if len(b) > maxRecordSize {
		return fmt.Errorf("%w: %d bytes", ErrRecordSize, len(b))
	}
	x.order.PutUint16(b[6:], uint16(len(b)))
	return x.WriteRecord(b)
}

// appendTrailer appends the fields that the first event has, in their order
// (perf_event__output_id_sample in kernel/events/core.c).
func (x *Writer) appendTrailer(b []byte, id SampleID) []byte {
	o, has := x.order, x.trailer.has
	if has&SampleTID != 0 {
		b = o.AppendUint32(o.AppendUint32(b, uint32(id.PID)), uint32(id.TID))
	}
	if has&SampleTime != 0 {
		b = o.AppendUint64(b, id.Time)
	}
	if has&SampleIDField != 0 {
		b = o.AppendUint64(b, id.ID)
	}
	if has&SampleStreamID != 0 {
		b = o.AppendUint64(b, id.StreamID)
	}
	if has&SampleCPU != 0 {
		b = o.AppendUint32(o.AppendUint32(b, id.CPU), 0)
	}
	if has&SampleIdentifier != 0 {
		b = o.AppendUint64(b, id.ID)
	}
	return b
}

// WriteKSymbol writes a KSYMBOL record.
func (x *Writer) WriteKSymbol(k *KSymbol, id SampleID) error {
	b := x.frame(TypeKSymbol, 0, 0)
	b = x.order.AppendUint64(b, k.Addr)
	b = x.order.AppendUint32(b, k.Len)
	b = x.order.AppendUint16(b, k.Kind)
	flags := uint16(0)
	if k.Unregister {
		flags = 1
	}
	b = x.order.AppendUint16(b, flags)
	return x.finish(appendName(b, k.Name), id)
}

// WriteBPFEvent writes a BPF_EVENT record.
func (x *Writer) WriteBPFEvent(e *BPFEvent, id SampleID) error {
	b := x.frame(TypeBPFEvent, 0, 0)
	b = x.order.AppendUint16(b, e.Kind)
	b = x.order.AppendUint16(b, e.Flags)
	b = x.order.AppendUint32(b, e.ID)
	return x.finish(append(b, e.Tag[:]...), id)
}

// WriteMmap writes an MMAP2 record if m has a build ID, else an MMAP record, of the
// given mode.
func (x *Writer) WriteMmap(m *Mmap, mode CPUMode, id SampleID) error {
	misc := uint16(mode)
	if m.Data {
		misc |= MiscMmapData
	}
	typ := TypeMmap
	if !m.BuildID.IsZero() {
		typ, misc = TypeMmap2, misc|MiscMmapBuildID
	}
	o := x.order
	b := x.frame(typ, misc, 0)
	b = o.AppendUint32(o.AppendUint32(b, uint32(m.PID)), uint32(m.TID))
	for _, v := range []uint64{m.Addr, m.Len, m.PgOff} {
		b = o.AppendUint64(b, v)
	}
	if typ == TypeMmap2 {
		b = append(b, byte(min(m.BuildID.Len(), maxMmapIDLen)), 0, 0, 0)
		key := m.BuildID.Key().Sum
		b = append(b, key[:]...)
		b = o.AppendUint32(o.AppendUint32(b, m.Prot), m.Flags)
	}
	return x.finish(appendName(b, m.Filename), id)
}

// WriteComm writes a COMM record.
func (x *Writer) WriteComm(c *Comm, id SampleID) error {
	misc := uint16(0)
	if c.Exec {
		misc = MiscCommExec
	}
	b := x.frame(TypeComm, misc, 0)
	b = x.order.AppendUint32(x.order.AppendUint32(b, uint32(c.PID)), uint32(c.TID))
	return x.finish(appendName(b, c.Name), id)
}

// WriteLost writes a LOST record with the number of lost records.
func (x *Writer) WriteLost(event, count uint64, id SampleID) error {
	b := x.frame(TypeLost, 0, 0)
	return x.finish(x.order.AppendUint64(x.order.AppendUint64(b, event), count), id)
}

func appendName(b, name []byte) []byte { return append(append(b, name...), 0) }
