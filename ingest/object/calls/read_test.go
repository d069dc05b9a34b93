package calls_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"testing"

	. "symbolize/fixtures/callsbuild"
	"symbolize/fixtures/sweep"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/calls"
	objelf "symbolize/ingest/object/elf"
)

// read returns the calls of an object.
func read(t testing.TB, o *Object) (*calls.Table, *Built) {
	t.Helper()
	b := o.Build()
	f, err := objelf.Open("built", bytes.NewReader(b.File), int64(len(b.File)))
	if err != nil {
		t.Fatal(err)
	}
	table, err := calls.Read(f, b.Rules, calls.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table, b
}

func funcs(table *calls.Table, b *Built) map[string]*calls.Func {
	found := make(map[string]*calls.Func)
	for name, at := range b.Start {
		if i := table.Func(at); i >= 0 {
			found[name] = &table.Funcs[i]
		}
	}
	return found
}

// TestRead reads calls of all kinds, their targets, and what is known of functions.
func TestRead(t *testing.T) {
	table, b := read(t, &Object{Imports: []string{"memcpy"}, Funcs: []Func{
		{Name: "leaf", Ops: Body(Work())},
		{Name: "main", Exported: true, Ops: Body(Frame(), Call("leaf"), Call("memcpy"), CallAny(),
			Address("taken"), Leave())},
		{Name: "taken", Ops: Body(Work())},
		{Name: "tail", Ops: append(Work(), Jump("leaf")...)},
		{Name: "tailOut", Ops: append(Work(), Jump("memcpy")...)},
		{Name: "leaps", Ops: append(Work(), JumpAny()...)},
		{Name: "unknown", Ops: Body(Bytes("\x06"))},
		{Name: "assembly", NoRules: true, Ops: Body(Call("leaf"))},
	}})
	var got []string
	for _, c := range table.Calls {
		got = append(got, fmt.Sprintf("%d %#x", c.Target.Kind, uint64(c.Target.At)))
	}
	leaf := fmt.Sprintf("%d %#x", calls.Local, uint64(b.Start["leaf"]))
	want := []string{leaf, fmt.Sprintf("%d 0x0", calls.Imported), fmt.Sprintf("%d 0x0", calls.Indirect), leaf}
	if !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	if len(table.Imports) != 1 || table.Imports[0].Name != "memcpy" {
		t.Errorf("imports %v", table.Imports)
	}
	if e := table.Exports; len(e) != 1 || e[0].Name != "main" || e[0].At != b.Start["main"] {
		t.Errorf("exports %v", e)
	}
	for name, f := range funcs(table, b) {
		if open := name == "main" || name == "taken"; f.Open != open || f.Leaps != (name == "leaps") ||
			f.Unknown != (name == "unknown") {
			t.Errorf("%s: open %v, leaps %v, unknown %v", name, f.Open, f.Leaps, f.Unknown)
		}
	}
	for name, want := range map[string]calls.Target{
		"tail": {Kind: calls.Local, At: b.Start["leaf"]}, "tailOut": {Kind: calls.Imported},
	} {
		if got := table.JumpsOf(table.Func(b.Start[name])); !slices.Equal(got, []calls.Target{want}) {
			t.Errorf("%s jumps to %v", name, got)
		}
	}
	if got := table.CallsOf(table.Func(b.Start["main"]))[0].Return; got != b.Returns["main"][0] {
		t.Errorf("the first call of main ends at %#x", uint64(got))
	}
}

// TestUnknown takes the address of every function that code which cannot be decoded may call.
func TestUnknown(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []Op
		open bool
	}{
		{"decoded", Body(Call("leaf")), false},
		{"unknown before the call", Body(Bytes("\x06"), Call("leaf")), true},
		{"unknown behind the call", Body(Call("leaf"), Bytes("\x06")), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, b := read(t, &Object{Funcs: []Func{{Name: "leaf", Ops: Body(Work())}, {Name: "f", Ops: c.ops}}})
			if f := funcs(table, b)["leaf"]; f.Open != c.open {
				t.Errorf("open %v", f.Open)
			}
		})
	}
}

// TestStates follows the frame pointer through functions.
func TestStates(t *testing.T) {
	table, b := read(t, &Object{Funcs: []Func{
		{Name: "framed", Ops: Body(Frame(), Work(), Leave())},
		{Name: "leaf", Ops: Body(Work())},
		{Name: "used", Ops: Body(Use(), Call("leaf"))},
		{Name: "saved", Ops: Body(Save(), Call("leaf"))},
		{Name: "back", Ops: Body(Signal())},
		{Name: "start", Ops: Body(Outermost())},
		{Name: "assembly", NoRules: true, Ops: Body(Call("leaf"))},
	}})
	const outer, own, used = calls.Outer, calls.Own, calls.Used
	for _, c := range []struct {
		name string
		at   addr.Addr // from the start
		want calls.State
	}{
		{"framed", 0, outer}, {"framed", 1, outer}, {"framed", 4, own}, {"framed", 8, own}, {"framed", 9, outer},
		{"leaf", 0, outer}, {"used", 0, outer}, {"used", 1, used}, {"used", 3, used},
		{"back", 0, calls.Signal}, {"start", 0, calls.Ends}, {"assembly", 2, calls.Unproven},
	} {
		if got := table.State(b.Start[c.name] + c.at); got != c.want {
			t.Errorf("%s+%d: state %d, want %d", c.name, c.at, got, c.want)
		}
	}
	for name, want := range map[string][2]bool{"used": {false, false}, "saved": {false, true},
		"assembly": {true, true}} {
		f := table.Func(b.Start[name])
		own, passes := table.FrameAt(f, table.CallsOf(f)[0])
		if own != want[0] || passes != want[1] {
			t.Errorf("%s: own %v, passes %v", name, own, passes)
		}
	}
}

// TestFixedAddress finds addresses of functions in an object that is not relocated.
func TestFixedAddress(t *testing.T) {
	o := &Object{Type: elf.ET_EXEC, Funcs: []Func{
		{Name: "first", Ops: Body(Work())},
		{Name: "taken", Ops: Body(Work())},
		{Name: "main", Ops: Body(Bytes("\xbf\x10\x20\x00\x00"))}, // mov $0x2010,%edi
	}}
	table, b := read(t, o)
	if b.Start["taken"] != 0x2010+0x10 && b.Start["taken"] != 0x2010 {
		t.Fatalf("taken is at %#x", uint64(b.Start["taken"]))
	}
	at := table.Func(0x2010)
	for i := range table.Funcs {
		if table.Funcs[i].Open != (i == at) {
			t.Errorf("function %d: open %v", i, table.Funcs[i].Open)
		}
	}
}

// TestDamaged reads an object with damage at each place: there is a table or an error.
func TestDamaged(t *testing.T) {
	o := &Object{Imports: []string{"memcpy", "pow"}, Funcs: []Func{
		{Name: "leaf", Exported: true, Ops: Body(Work())},
		{Name: "main", Ops: Body(Frame(), Call("leaf"), Call("pow"), Leave())},
	}}
	b := o.Build()
	rnd := sweep.Rand(t)
	for at := range sweep.Of(rnd, len(b.File), 300) {
		damaged := bytes.Clone(b.File)
		damaged[at] ^= byte(1 + rnd.IntN(255))
		check(damaged, b)
		check(b.File[:at], b)
	}
}

func check(file []byte, b *Built) {
	f, err := objelf.Open("damaged", bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return
	}
	table, err := calls.Read(f, b.Rules, calls.Options{})
	if err != nil || table == nil {
		return
	}
	for i := range table.Funcs {
		table.JumpsOf(i)
		for _, c := range table.CallsOf(i) {
			table.FrameAt(i, c)
		}
	}
}

// TestARM64 reads calls and states of an object of arm64: the frame pointer is the caller's in leaf
// functions, in prologues, and behind the instruction that restores it.
func TestARM64(t *testing.T) {
	table, b := read(t, &Object{ARM64: true, Funcs: []Func{
		{Name: "leaf", Ops: Body(Work())},
		{Name: "main", Exported: true, Ops: Body(Frame(), Call("leaf"), Work(), CallAny(), Leave())},
		{Name: "tail", Ops: append(Work(), Jump("leaf")...)},
		{Name: "leaps", Ops: append(Work(), JumpAny()...)},
	}})
	list := table.CallsOf(table.Func(b.Start["main"]))
	leaf := calls.Target{Kind: calls.Local, At: b.Start["leaf"]}
	if want := []calls.Call{{Return: b.Returns["main"][0], Target: leaf}, {Return: b.Returns["main"][1]}}; !slices.Equal(list, want) {
		t.Errorf("calls %+v, want %+v", list, want)
	}
	if got := table.JumpsOf(table.Func(b.Start["tail"])); !slices.Equal(got, []calls.Target{leaf}) {
		t.Errorf("jumps %+v", got)
	}
	for name, f := range funcs(table, b) {
		if !f.Open || f.Leaps != (name == "leaps") || f.Unknown {
			t.Errorf("%s: open %v, leaps %v, unknown %v", name, f.Open, f.Leaps, f.Unknown)
		}
	}
	for _, c := range []struct {
		name string
		at   addr.Addr
		want calls.State
	}{
		{"leaf", b.Start["leaf"], calls.Outer},
		{"before stp", b.Start["main"], calls.Outer},
		{"between stp and mov", b.Start["main"] + 4, calls.Unproven},
		{"behind mov", b.Start["main"] + 8, calls.Own},
		{"at a call", b.Returns["main"][0] - 1, calls.Own},
		{"at ldp", b.Inside["main"], calls.Own},
		{"at ret", b.Inside["main"] + 4, calls.Outer},
	} {
		if got := table.State(c.at); got != c.want {
			t.Errorf("%s: state %d, want %d", c.name, got, c.want)
		}
	}
}
