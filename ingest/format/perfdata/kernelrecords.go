package perfdata

import "encoding/binary"

// Kinds of kernel symbols (KSymbol.Kind).
const (
	KSymbolUnknown = 0
	KSymbolBPF     = 1 // a BPF program, trampoline or dispatcher
	KSymbolOOL     = 2 // out-of-line code of kprobes and ftrace
)

// KSymbol is a KSYMBOL record: code appeared in the kernel, or went away.
type KSymbol struct {
	Addr       uint64
	Len        uint32 // bytes; 0: the program is not JITed
	Kind       uint16
	Unregister bool
	Name       []byte // aliases the record
}

// KSymbol decodes a KSYMBOL record.
func (f *File) KSymbol(rec *Record, k *KSymbol) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*k = KSymbol{Addr: r.U64(), Len: r.U32(), Kind: r.U16(), Unregister: r.U16()&1 != 0}
	k.Name = rest(&r)
	return r.Err()
}

// Kinds of BPF events (BPFEvent.Kind).
const (
	BPFLoad   = 1
	BPFUnload = 2
)

// BPFEvent is a BPF_EVENT record: a program was loaded or unloaded. Its address is in the KSYMBOL
// records just before.
type BPFEvent struct {
	Kind  uint16 // BPFLoad or BPFUnload
	Flags uint16
	ID    uint32
	Tag   [8]byte
}

// BPFEvent decodes a BPF_EVENT record.
func (f *File) BPFEvent(rec *Record, b *BPFEvent) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*b = BPFEvent{Kind: r.U16(), Flags: r.U16(), ID: r.U32()}
	copy(b.Tag[:], r.Bytes(uint64(len(b.Tag))))
	return r.Err()
}

// Lost is a LOST or LOST_SAMPLES record.
type Lost struct {
	ID    uint64 // of the event; LOST only
	Count uint64 // records lost since the last such record
	ByBPF bool   // LOST_SAMPLES: a BPF filter dropped them intentionally
}

// Lost decodes a LOST or LOST_SAMPLES record.
func (f *File) Lost(rec *Record, l *Lost) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*l = Lost{}
	if rec.Type == TypeLost {
		l.ID = r.U64()
	} else {
		l.ByBPF = rec.Misc&MiscLostByBPF != 0
	}
	l.Count = r.U64()
	return r.Err()
}

// Throttle is a THROTTLE or UNTHROTTLE record: the kernel stopped an event that came too often, or
// resumed it.
type Throttle struct{ Time, ID, StreamID uint64 }

// Throttle decodes a THROTTLE or UNTHROTTLE record.
func (f *File) Throttle(rec *Record, t *Throttle) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*t = Throttle{Time: r.U64(), ID: r.U64(), StreamID: r.U64()}
	return r.Err()
}

// TextPoke is a TEXT_POKE record: kernel code changed in place.
type TextPoke struct {
	Addr     uint64
	Old, New []byte // alias the record
}

// TextPoke decodes a TEXT_POKE record.
func (f *File) TextPoke(rec *Record, t *TextPoke) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*t = TextPoke{Addr: r.U64()}
	oldLen, newLen := r.U16(), r.U16()
	t.Old, t.New = r.Bytes(uint64(oldLen)), r.Bytes(uint64(newLen))
	return r.Err()
}

// Namespace is one link of a process's namespaces.
type Namespace struct{ Dev, Inode uint64 }

// NumNamespaces is the number of links that are kept: NR_NAMESPACES of the format, net,
// uts, ipc, pid, user, mnt and cgroup.
const NumNamespaces = 7

// Namespaces is a NAMESPACES record.
type Namespaces struct {
	PID, TID int32
	// Links are net, uts, ipc, pid, user, mnt and cgroup; zero where the record ends earlier. Links
	// that newer kernels add are left out.
	Links [NumNamespaces]Namespace
}

// Namespaces decodes a NAMESPACES record.
func (f *File) Namespaces(rec *Record, n *Namespaces) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*n = Namespaces{PID: int32(r.U32()), TID: int32(r.U32())}
	nr := r.U64()
	for i := range min(nr, NumNamespaces) {
		n.Links[i] = Namespace{Dev: r.U64(), Inode: r.U64()}
	}
	return r.Err()
}

// Cgroup is a CGROUP record: the name of a cgroup's number.
type Cgroup struct {
	ID   uint64
	Path []byte // aliases the record
}

// Cgroup decodes a CGROUP record.
func (f *File) Cgroup(rec *Record, c *Cgroup) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*c = Cgroup{ID: r.U64()}
	c.Path = rest(&r)
	return r.Err()
}

// Switch is a SWITCH or SWITCH_CPU_WIDE record; the switched thread is in the trailer.
type Switch struct {
	Out      bool  // leaves the CPU, else comes to it
	Preempt  bool  // preempted
	PID, TID int32 // of the other side; SWITCH_CPU_WIDE only
}

// Switch decodes a SWITCH or SWITCH_CPU_WIDE record.
func (f *File) Switch(rec *Record, s *Switch) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*s = Switch{Out: rec.Misc&MiscSwitchOut != 0}
	s.Preempt = s.Out && rec.Misc&MiscSwitchPreempt != 0
	if rec.Type == TypeSwitchCPUWide {
		s.PID, s.TID = int32(r.U32()), int32(r.U32())
	}
	return r.Err()
}

// DeferredChain is a CALLCHAIN_DEFERRED record (Linux 6.19): the user part of the call chains of
// a thread's samples that end with PERF_CONTEXT_USER_DEFERRED and this cookie. The thread is in
// the trailer; it was unwound when it went back to user mode.
type DeferredChain struct {
	Cookie uint64
	// Chain is as in Sample: words of 8 bytes, little-endian. It aliases the record or a buffer
	// of the DeferredChain.
	Chain []byte

	scratch []byte
}

// DeferredChain decodes a CALLCHAIN_DEFERRED record.
func (f *File) DeferredChain(rec *Record, d *DeferredChain) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	d.Cookie, d.Chain = r.U64(), nil
	if n := r.U64(); n > uint64(r.Left())/8 {
		return f.recordError(rec, "call chain overruns the record")
	} else if d.Chain = r.Bytes(8 * n); f.BigEndian {
		d.scratch = d.scratch[:0]
		for b := d.Chain; len(b) >= 8; b = b[8:] {
			d.scratch = binary.LittleEndian.AppendUint64(d.scratch, binary.BigEndian.Uint64(b))
		}
		d.Chain = d.scratch
	}
	return r.Err()
}
