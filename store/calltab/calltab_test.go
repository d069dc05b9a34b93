package calltab

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	. "symbolize/fixtures/callsbuild"
	"symbolize/ingest/object/calls"
	"symbolize/ingest/object/elf"
	"symbolize/store/symtab"
)

// table returns the calls of an object of n functions, each of which calls the one before.
func table(t testing.TB, n int) *calls.Table {
	o := &Object{Funcs: []Func{{Name: "f0", Exported: true, Ops: Body(Work())}}}
	for i := 1; i < n; i++ {
		o.Funcs = append(o.Funcs, Func{Name: fmt.Sprint("f", i), Exported: i%3 == 0,
			Ops: Body(Frame(), Call(fmt.Sprint("f", i-1)), Work(), Call(fmt.Sprint("f", i*7%i)), Leave())})
	}
	b := o.Build()
	f, err := elf.Open("built", bytes.NewReader(b.File), int64(len(b.File)))
	if err != nil {
		t.Fatal(err)
	}
	table, err := calls.Read(f, b.Rules, calls.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestEncode encodes tables that are in their header, and ones in blocks, and reads them back.
func TestEncode(t *testing.T) {
	for _, c := range []struct {
		functions int
		inline    bool
	}{{1, true}, {100, true}, {6000, false}} {
		want := table(t, c.functions)
		e := Encode(want)
		if (len(e.Chunks) == 0) != c.inline {
			t.Errorf("%d functions: %d blocks", c.functions, len(e.Chunks))
		}
		got, err := Open(e.Header, e)
		if err != nil {
			t.Fatal(err)
		}
		if got.NumFuncs() != e.Funcs || got.Named() != e.Named || got.NumBlocks(symtab.Chunk) != len(e.Chunks) ||
			got.NumBlocks(symtab.Strings) != 0 {
			t.Errorf("%d functions: %d of %d bytes, %d blocks", c.functions, got.NumFuncs(), got.Named(),
				got.NumBlocks(symtab.Chunk))
		}
		if sum, err := got.Digest(); err != nil || sum != e.Digest {
			t.Errorf("%d functions: digest %x, want %x; %v", c.functions, sum, e.Digest, err)
		}
		if read, err := got.Calls(); err != nil || len(read.Calls) != len(want.Calls) ||
			len(want.Calls) > 0 && !reflect.DeepEqual(read.Calls, want.Calls) {
			t.Errorf("%d functions: other calls; %v", c.functions, err)
		}
	}
	if Encode(&calls.Table{}) != nil {
		t.Error("a table without functions")
	}
}

// TestDamaged opens every prefix of a header, and headers with a changed byte.
func TestDamaged(t *testing.T) {
	e := Encode(table(t, 20))
	for n := range e.Header {
		if tab, err := Open(e.Header[:n], nil); err == nil {
			if _, err := tab.Digest(); err == nil {
				t.Errorf("%d bytes of %d are a table", n, len(e.Header))
			}
		}
		h := bytes.Clone(e.Header)
		h[n] ^= 0x55
		if tab, err := Open(h, nil); err == nil {
			tab.Digest()
		}
	}
	newer := bytes.Clone(e.Header)
	newer[len(magic)] = Version + 1
	if _, err := Open(newer, nil); !errors.Is(err, symtab.ErrVersion) {
		t.Errorf("a newer version: %v", err)
	}
}

// FuzzOpen opens damaged headers.
func FuzzOpen(f *testing.F) {
	f.Add(Encode(table(f, 20)).Header)
	f.Fuzz(func(t *testing.T, b []byte) {
		tab, err := Open(b, nil)
		if err != nil {
			return
		}
		if _, err := tab.Calls(); err != nil && !errors.Is(err, symtab.ErrFormat) {
			t.Fatal(err)
		}
	})
}
