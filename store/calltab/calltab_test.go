package calltab

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	b "symbolize/fixtures/callsbuild"
	"symbolize/fixtures/sweep"
	"symbolize/ingest/object/calls"
	"symbolize/ingest/object/elf"
	"symbolize/store/symtab"
)

// read returns the calls of an object.
func read(t testing.TB, o *b.Object) (*calls.Table, *b.Built) {
	built := o.Build()
	f, err := elf.Open("built", bytes.NewReader(built.File), int64(len(built.File)))
	if err != nil {
		t.Fatal(err)
	}
	table, err := calls.Read(f, built.Rules, calls.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table, built
}

// many returns the calls of an object of n functions, each of which calls two before it.
func many(t testing.TB, n int) *calls.Table {
	o := &b.Object{Funcs: []b.Func{{Name: "f0", Exported: true, Ops: b.Body(b.Work())}}}
	for i := 1; i < n; i++ {
		o.Funcs = append(o.Funcs, b.Func{Name: fmt.Sprint("f", i), Exported: i%3 == 0,
			Ops: b.Body(b.Frame(), b.Call(fmt.Sprint("f", i-1)), b.Work(), b.Call(fmt.Sprint("f", i*7%i)), b.Leave())})
	}
	table, _ := read(t, o)
	return table
}

// kinds is an object with everything that a table has.
var kinds = &b.Object{Imports: []string{"memcpy", "pow"}, Funcs: []b.Func{
	{Name: "leaf", Exported: true, Ops: b.Body(b.Work())},
	{Name: "main", Exported: true, Ops: b.Body(b.Frame(), b.Call("leaf"), b.Call("pow"), b.CallAny(),
		b.Address("use"), b.Leave())},
	{Name: "use", Ops: b.Body(b.Use(), b.Call("memcpy"), b.Call("twice"))},
	{Name: "tail", Ops: append(b.Work(), b.Jump("leaf")...)},
	{Name: "tailOut", Ops: append(b.Work(), b.Jump("memcpy")...)},
	{Name: "leaps", Ops: append(b.Work(), b.JumpAny()...)},
	{Name: "unknown", Ops: b.Body(b.Bytes("\x06"))},
	{Name: "passes", Ops: b.Body(b.Call("twice"))},
	{Name: "jumps", Ops: append(b.Work(), b.Jump("twice")...)},
	{Name: "twice", Ops: b.Body(b.Save(), b.Call("last"))},
	{Name: "callsJumps", Ops: b.Body(b.Frame(), b.Call("jumps"))},
	{Name: "last", Ops: b.Body(b.Work())},
	{Name: "inside", Ops: b.Body(b.Bytes("\xe8\xf0\xff\xff\xff"))}, // a call of the middle of something
	{Name: "outside", Ops: b.Body(b.Bytes("\xe8\x00\x00\x10\x00"))},
}}

func open(t testing.TB, table *calls.Table) *Table {
	e := Encode(table)
	got, err := Open(e.Header, e)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// compare compares the answers of a stored table with those of the one that it was made of.
func compare(t *testing.T, got *Table, want *calls.Table) {
	t.Helper()
	e := encoder{t: want}
	for i := range want.Funcs {
		fn := &want.Funcs[i]
		f, ok := got.Func(int32(i))
		if !ok || f.Start() != fn.Start || f.Escapes() != (fn.Leaps || fn.Unknown) {
			t.Fatalf("function %d: %v", i, ok)
		}
		for a := fn.Start; a < fn.End; a++ {
			if p := got.At(a); p.Func != int32(i) || p.State != want.State(a) || p.Unknown != fn.Unknown {
				t.Fatalf("%#x: %+v, want function %d, state %d", uint64(a), p, i, want.State(a))
			}
		}
		list := want.CallsOf(i)
		if len(f.Calls()) != len(list) {
			t.Fatalf("function %d: %d calls, want %d", i, len(f.Calls()), len(list))
		}
		for k, c := range f.Calls() {
			x := e.target(list[k].Target)
			x.Own, x.Passes = want.FrameAt(i, list[k])
			if p := got.At(c.Return - 1); c.Return != list[k].Return || c.Target != x || !p.Returns || p.Call != x {
				t.Fatalf("function %d, call %d: %+v, want %+v", i, k, c, x)
			}
			if got.At(c.Return).Returns && k+1 == len(list) {
				t.Fatalf("a call that ends behind the one before")
			}
		}
		var jumps []Target
		for _, x := range want.JumpsOf(i) {
			jumps = append(jumps, e.target(x))
		}
		if !slices.Equal(f.Jumps(), jumps) {
			t.Fatalf("function %d jumps to %v, want %v", i, f.Jumps(), jumps)
		}
	}
	for _, r := range want.States {
		if p := got.At(r.At); p.State != r.State {
			t.Errorf("state at %#x: %d, want %d", uint64(r.At), p.State, r.State)
		}
	}
	for i, s := range want.Imports {
		if x, ok := got.Import(int32(i)); !ok || x != (Symbol{Hash(s.Name), s.Version}) {
			t.Errorf("import %d: %v", i, x)
		}
	}
	for i := range want.Exports {
		x := &want.Exports[i]
		list := got.Exports(Hash(x.Name))
		if !slices.ContainsFunc(list, func(y Export) bool {
			return y.Version == x.Version && y.Hidden == x.Hidden && y.Resolver == x.Resolver &&
				(x.Resolver || y.N == int32(want.Func(x.At)))
		}) {
			t.Errorf("export %+v: %+v", x, list)
		}
	}
	if got.Err() != nil {
		t.Error(got.Err())
	}
}

// TestEncode encodes tables that are in their header, and ones in blocks, and asks them.
func TestEncode(t *testing.T) {
	all, _ := read(t, kinds)
	stubs := []calls.Row{{At: 0x1000, State: calls.Outer}, {At: 0x1800, State: calls.Unproven}}
	all.States = append(stubs, all.States...)
	for _, c := range []struct {
		name   string
		table  *calls.Table
		inline bool
	}{{"one function", many(t, 1), true}, {"all kinds", all, true}, {"many chunks", many(t, 6000), false}} {
		t.Run(c.name, func(t *testing.T) {
			e := Encode(c.table)
			got, err := Open(e.Header, e)
			if err != nil {
				t.Fatal(err)
			}
			if (len(e.Chunks) == 0) != c.inline || got.NumFuncs() != e.Funcs || got.Named() != e.Named ||
				got.NumBlocks(symtab.Chunk) != len(e.Chunks) || got.NumBlocks(symtab.Strings) != len(e.Strings) {
				t.Errorf("%d functions of %d bytes, %d chunks", got.NumFuncs(), got.Named(), len(e.Chunks))
			}
			if sum, err := got.Digest(); err != nil || sum != e.Digest {
				t.Errorf("digest %x, want %x; %v", sum, e.Digest, err)
			}
			compare(t, got, c.table)
		})
	}
	if Encode(&calls.Table{}) != nil {
		t.Error("a table without functions")
	}
}

// TestVariants lists the functions that a resolver returns, and the exports by it.
func TestVariants(t *testing.T) {
	table, built := read(t, kinds)
	at := built.Start["main"]
	table.Resolvers[at] = append(table.Resolvers[at], built.Start["leaf"], built.Start["last"])
	table.Exports = append(table.Exports, calls.Export{Symbol: calls.Symbol{Name: "memmove", Version: "V2"},
		Resolver: true, Hidden: true, At: at})
	got := open(t, table)
	list := got.Exports(Hash("memmove"))
	if len(list) != 1 || !list[0].Resolver || !list[0].Hidden || list[0].Version != "V2" {
		t.Fatalf("exports %+v", list)
	}
	want := []int32{int32(table.Func(built.Start["leaf"])), int32(table.Func(built.Start["last"]))}
	if v := got.Variants(list[0].N); !slices.Equal(v, want) {
		t.Errorf("variants %v, want %v", v, want)
	}
	if got.Variants(-1) != nil || got.Variants(1) != nil {
		t.Error("variants of no resolver")
	}
}

// TestCallers lists the callers of functions that only their object knows.
func TestCallers(t *testing.T) {
	table, built := read(t, kinds)
	got := open(t, table)
	for _, c := range []struct {
		name    string
		callers []string
		closed  bool
	}{
		{"leaf", nil, false}, // exported
		{"use", nil, false},  // its address is taken
		{"twice", []string{"passes", "callsJumps"}, true}, // use has another value in the register
		{"last", []string{"twice"}, true},
		{"tail", nil, true}, // nobody
	} {
		f, _ := got.Func(int32(table.Func(built.Start[c.name])))
		list, closed := f.Callers()
		var names []string
		for _, n := range list {
			for name, a := range built.Start {
				if table.Funcs[n].Start == a {
					names = append(names, name)
				}
			}
		}
		if closed != c.closed || !slices.Equal(names, c.callers) {
			t.Errorf("%s: callers %q, %v; want %q, %v", c.name, names, closed, c.callers, c.closed)
		}
	}
}

// ask asks a table everything.
func ask(t *Table) {
	for n := range t.NumFuncs() {
		f, ok := t.Func(int32(n))
		if !ok {
			break
		}
		t.At(f.Start())
		f.Callers()
		for _, c := range f.Calls() {
			t.At(c.Return - 1)
			t.Import(c.N)
			t.Variants(c.N)
		}
		f.Jumps()
	}
	t.Exports(0)
}

// TestDamaged opens every prefix of a header, headers with a changed byte, and tables with damaged
// blocks: they fail with a reason, and answer nothing.
func TestDamaged(t *testing.T) {
	all, _ := read(t, kinds)
	e := Encode(all)
	for n := range e.Header {
		if tab, err := Open(e.Header[:n], nil); err == nil {
			if _, err := tab.Digest(); err == nil {
				t.Errorf("%d bytes of %d are a table", n, len(e.Header))
			}
		}
		h := bytes.Clone(e.Header)
		h[n] ^= 0x55
		if tab, err := Open(h, nil); err == nil {
			ask(tab)
			tab.Digest()
		}
	}
	newer := bytes.Clone(e.Header)
	newer[len(magic)] = Version + 1
	if _, err := Open(newer, nil); !errors.Is(err, symtab.ErrVersion) {
		t.Errorf("a newer version: %v", err)
	}
	large := Encode(many(t, 1000))
	for i := range large.Chunks {
		tab, err := Open(large.Header, &symtab.Encoded{Chunks: slices.Concat(large.Chunks[:i], [][]byte{{1}},
			large.Chunks[i+1:]), Strings: large.Strings})
		if err != nil {
			t.Fatal(err)
		}
		if p := tab.At(tab.dir[i].start); p.Func != -1 || p.State != calls.Unproven || !errors.Is(tab.Err(), symtab.ErrFormat) {
			t.Errorf("chunk %d: %+v, %v", i, p, tab.Err())
		}
	}
}

// TestDamagedChunk decodes chunks and symbols with a changed byte, and their prefixes.
func TestDamagedChunk(t *testing.T) {
	all, _ := read(t, kinds)
	tab := open(t, all)
	raw, err := tab.block(symtab.Chunk, 0)
	if err != nil {
		t.Fatal(err)
	}
	chunk, symbols := bytes.Clone(raw), tab.mustSymbols(t)
	rnd := sweep.Rand(t)
	for n := range chunk {
		if _, err := tab.decode(&tab.dir[0], chunk[:n]); err == nil {
			t.Errorf("%d bytes of %d are a chunk", n, len(chunk))
		}
		changed := bytes.Clone(chunk)
		changed[n] ^= byte(1 + rnd.IntN(255))
		if c, err := tab.decode(&tab.dir[0], changed); err == nil {
			again := open(t, all)
			again.chunks[0] = c
			ask(again)
		}
	}
	for n := range symbols {
		if err := open(t, all).decodeSymbols(symbols[:n]); err == nil {
			t.Errorf("%d bytes of %d are symbols", n, len(symbols))
		}
	}
}

func (t *Table) mustSymbols(tb testing.TB) []byte {
	b, err := t.block(symtab.Strings, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// FuzzOpen opens damaged headers.
func FuzzOpen(f *testing.F) {
	all, _ := read(f, kinds)
	f.Add(Encode(all).Header)
	f.Fuzz(func(t *testing.T, b []byte) {
		tab, err := Open(b, nil)
		if err != nil {
			return
		}
		ask(tab)
		if tab.Err() != nil && !errors.Is(tab.Err(), symtab.ErrFormat) {
			t.Fatal(tab.Err())
		}
	})
}

// FuzzChunk decodes damaged chunks, which are compressed in a table.
func FuzzChunk(f *testing.F) {
	all, _ := read(f, kinds)
	tab := open(f, all)
	raw, _ := tab.block(symtab.Chunk, 0)
	f.Add(bytes.Clone(raw))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := tab.decode(&tab.dir[0], b); err == nil {
			again := open(t, all)
			again.chunks[0] = c
			ask(again)
		}
	})
}
