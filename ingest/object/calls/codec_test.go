package calls_test

import (
	"bytes"
	"reflect"
	"testing"

	. "symbolize/fixtures/callsbuild"
	"symbolize/ingest/object/calls"
)

// encoded returns the form of a table with everything in it.
func encoded(t testing.TB) (*calls.Table, []byte) {
	o := &Object{Imports: []string{"memcpy", "pow"}, Funcs: []Func{
		{Name: "leaf", Exported: true, Ops: Body(Work())},
		{Name: "main", Exported: true, Ops: Body(Frame(), Call("leaf"), Call("pow"), CallAny(), Address("use"), Leave())},
		{Name: "use", Ops: Body(Use(), Call("memcpy"))},
		{Name: "tail", Ops: append(Work(), Jump("leaf")...)},
		{Name: "tailOut", Ops: append(Work(), Jump("memcpy")...)},
		{Name: "leaps", Ops: append(Work(), JumpAny()...)},
		{Name: "unknown", Ops: Body(Bytes("\x06"))},
		{Name: "inside", Ops: Body(Bytes("\xe8\xf0\xff\xff\xff"))}, // a call of the middle of something
		{Name: "outside", Ops: Body(Bytes("\xe8\x00\x00\x10\x00"))},
	}}
	table, _ := read(t, o)
	return table, table.Append(nil)
}

// TestCodec encodes a table and decodes it again.
func TestCodec(t *testing.T) {
	table, b := encoded(t)
	got, err := calls.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Append(nil), b) {
		t.Error("the decoded table has another form")
	}
	if !reflect.DeepEqual(got.Funcs, table.Funcs) || !reflect.DeepEqual(got.Calls, table.Calls) ||
		!reflect.DeepEqual(got.Exports, table.Exports) || !reflect.DeepEqual(got.Imports, table.Imports) {
		t.Errorf("decoded %+v\nwant %+v", got, table)
	}
	for i := range table.Funcs {
		if !reflect.DeepEqual(got.JumpsOf(i), table.JumpsOf(i)) && len(table.JumpsOf(i)) > 0 {
			t.Errorf("jumps of function %d: %v, want %v", i, got.JumpsOf(i), table.JumpsOf(i))
		}
		for a := table.Funcs[i].Start; a < table.Funcs[i].End; a++ {
			if got.State(a) != table.State(a) {
				t.Errorf("state at %#x: %d, want %d", uint64(a), got.State(a), table.State(a))
			}
		}
	}
	for n := range b {
		if _, err := calls.Parse(b[:n]); err == nil {
			t.Errorf("%d bytes of %d are a table", n, len(b))
		}
	}
}

// FuzzParse decodes damaged tables: what is accepted can be asked, and encodes to a table again.
func FuzzParse(f *testing.F) {
	_, b := encoded(f)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := calls.Parse(b)
		if err != nil {
			return
		}
		for i := range table.Funcs {
			table.JumpsOf(i)
			for _, c := range table.CallsOf(i) {
				table.FrameAt(i, c)
				if c.Target.Kind == calls.Imported {
					_ = table.Imports[c.Target.At]
				}
			}
		}
		if _, err := calls.Parse(table.Append(nil)); err != nil {
			t.Fatal(err)
		}
	})
}
