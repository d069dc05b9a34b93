package unwind

import (
	"sync"
	"sync/atomic"

	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/input"
	"symbolize/store"
	"symbolize/store/unwindtab"
)

// tableMemory bounds the decoded chunks of all tables, in bytes: ten million rows.
const tableMemory = 64 << 20

// Tables are the unwind tables of a store, with bounded memory, for any number of captures.
type Tables struct {
	view   store.View
	limit  int64
	local  func(*ingest.Object) store.View
	failed func(error) // gets errors of tables that could not be read
	search sync.Mutex  // for local

	mu     sync.Mutex // guards the fields below, and the Tables
	held   int64
	loaded []*chunkSlot
	clock  atomic.Uint32 // grows with each chunk that is loaded
}

// NewTables returns the tables of a view. local may be nil; it makes a view with the table of an
// object that has none in v, and returns nil if this host does not have the file. It is called once
// per object, by one goroutine at a time. failed receives the errors of unreadable tables; several
// goroutines may call it.
func NewTables(v store.View, local func(*ingest.Object) store.View, failed func(error)) *Tables {
	return &Tables{view: v, limit: tableMemory, local: local, failed: failed}
}

// unwinder is the Unwinder of one capture.
type unwinder struct {
	tables  *Tables
	objects []objectTables // by raw object
}

// objectTables are the tables of one object, opened when they are first needed.
type objectTables struct {
	object *ingest.Object
	once   sync.Once
	addrs  resolve.Addresses
	tables []*objectTable
}

// objectTable is one open table and its chunks.
type objectTable struct {
	table  *unwindtab.Table
	chunks []chunkSlot
}

// chunkSlot holds a chunk while it is in memory.
type chunkSlot struct {
	chunk atomic.Pointer[unwindtab.Chunk]
	used  atomic.Uint32 // Tables.clock when it was last used
	bad   atomic.Bool
}

// For returns the Unwinder of a capture with these objects, see input.UnwinderFor.
func (t *Tables) For(objects []ingest.Object) input.Unwinder {
	u := &unwinder{tables: t, objects: make([]objectTables, len(objects))}
	for i := range objects {
		u.objects[i].object = &objects[i]
	}
	return u
}

// Worker implements input.Unwinder.
func (u *unwinder) Worker() input.StackUnwinder {
	return &stackUnwinder{u: u, cache: make([]found, 1<<cacheBits)}
}

// lookUp finds the rule of an address.
func (u *unwinder) lookUp(spaces *addrspace.Map, v addrspace.Version, at addr.PC) found {
	f := found{at: at, version: v, kind: unmapped}
	m := spaces.User(v, at)
	if m == nil {
		return f
	}
	f.kind = generated
	o := &u.objects[m.Object]
	jit := o.object.Kind == ingest.JITDump
	if !jit && o.object.Kind != ingest.ELF && o.object.Kind != ingest.VDSO {
		return f
	}
	o.once.Do(func() { u.tables.open(o) })
	if len(o.tables) == 0 && !jit {
		f.kind = noTable
		if o.object.Kind == ingest.VDSO {
			f.kind = noImage
		}
		return f
	}
	if !jit {
		f.kind = noRule
	}
	a, ok := o.addrs.Of(m.Offset(at))
	if !ok {
		return f
	}
	for _, t := range o.tables {
		if rule, ok := u.tables.rule(t, a); ok {
			f.kind, f.rule, f.exprs = ruled, rule, t.table.Exprs
			return f
		}
	}
	return f
}

// open opens the tables of an object.
func (t *Tables) open(o *objectTables) {
	if o.object.ID.IsZero() {
		return
	}
	if t.openIn(t.view, o); len(o.tables) > 0 || t.local == nil {
		return
	}
	t.search.Lock()
	defer t.search.Unlock()
	if v := t.local(o.object); v != nil {
		t.openIn(v, o)
	}
}

// openIn opens the tables that a view has of an object.
func (t *Tables) openIn(v store.View, o *objectTables) {
	m, _, err := store.FindOne(v, o.object.ID)
	if err != nil {
		t.failed(err)
	}
	if m == nil {
		return
	}
	addrs, why := resolve.NewAddresses(o.object, m)
	if why != ingest.ReasonNone {
		return
	}
	o.addrs = addrs
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range m.Sources {
		if m.Sources[i].Kind.Format() != store.FormatUnwind {
			continue
		}
		table, err := v.OpenUnwind(m, i)
		if err != nil {
			t.failed(err)
			continue
		}
		o.tables = append(o.tables, &objectTable{table, make([]chunkSlot, table.NumChunks())})
	}
}
