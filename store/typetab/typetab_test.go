package typetab

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/datatype"
	"symbolize/ingest/object/flow"
	"symbolize/store/symtab"
)

// built returns a table of n functions, and a structure of n members.
func built(t testing.TB, n int) *datatype.Table {
	b := btf.NewBuilder(false, 8)
	defs := []btf.Def{{Kind: btf.KindInt, Name: "long int", Size: 8, Int: btf.Int{Bits: 64, Signed: true}},
		{Kind: btf.KindStruct, Name: "wide", Size: uint32(8 * n)}}
	for i := range n {
		defs[1].Items = append(defs[1].Items, btf.DefItem{Name: fmt.Sprint("member_", i), Ref: 1, Value: uint64(64 * i)})
	}
	ids := b.Add(defs)
	types, final, err := b.Types("built")
	if err != nil {
		t.Fatal(err)
	}
	out := &datatype.Table{Types: types}
	for i := range n {
		start := addr.Addr(0x1000 + 0x40*i)
		f := datatype.Func{Range: addr.Range{Start: start, End: start + 0x30}}
		if i%7 == 3 {
			f.Reason = flow.TooLarge
		} else {
			f.Rows = []flow.Access{{At: start, Reason: flow.StackOp},
				{At: start + 4, Type: final(ids[2]), Offset: int64(8 * i), Size: 8, Sure: i%2 == 0, Write: i%3 == 0,
					Pair: i%5 == 0},
				{At: start + 9, Type: final(ids[1]), Offset: 0, Size: 4, Fixed: i%4 == 0},
				{At: start + 12, Reason: flow.Weak}}
		}
		out.Funcs = append(out.Funcs, f)
	}
	return out
}

// TestEncode encodes tables that are in their header, and ones in blocks, and asks them.
func TestEncode(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		inline bool
	}{{"one function", 1, true}, {"many", 4000, false}} {
		t.Run(c.name, func(t *testing.T) {
			want := built(t, c.n)
			e := Encode(want)
			got, err := Open(e.Header, e)
			if err != nil {
				t.Fatal(err)
			}
			if (len(e.Chunks) == 0) != c.inline || got.NumFuncs() != c.n || got.Named() != uint64(0x30*c.n) ||
				got.NumBlocks(symtab.Chunk) != len(e.Chunks) || got.NumBlocks(symtab.Strings) != len(e.Strings) {
				t.Errorf("%d functions of %d bytes, %d chunks", got.NumFuncs(), got.Named(), len(e.Chunks))
			}
			if sum, err := got.Digest(); err != nil || sum != e.Digest {
				t.Errorf("digest %x, want %x; %v", sum, e.Digest, err)
			}
			types, err := got.Types()
			if err != nil || !reflect.DeepEqual(types.Raw(), want.Types.Raw()) {
				t.Errorf("types differ: %v", err)
			}
			check(t, got, want)
		})
	}
	if Encode(&datatype.Table{Types: built(t, 1).Types}) != nil {
		t.Error("a table without functions")
	}
}

// check asks for each address.
func check(t *testing.T, got *Table, want *datatype.Table) {
	t.Helper()
	for _, f := range want.Funcs {
		rows := make(map[addr.Addr]flow.Access)
		for _, r := range f.Rows {
			rows[r.At] = r
		}
		for a := f.Start - 1; a <= f.End; a++ {
			w, ok := rows[a]
			switch {
			case a < f.Start || a >= f.End:
				w = flow.Access{At: a, Reason: flow.NoDebugInfo}
			case f.Reason != flow.Known:
				w = flow.Access{At: a, Reason: f.Reason}
			case !ok:
				w = flow.Access{At: a, Reason: flow.NoMemory}
			}
			if x, err := got.At(a); err != nil || x != w {
				t.Fatalf("%#x: %+v, %v, want %+v", uint64(a), x, err, w)
			}
		}
	}
}

// use reads all of a table.
func use(header []byte) error {
	t, err := Open(header, nil)
	if err != nil {
		return err
	}
	if _, err := t.Digest(); err != nil {
		return err
	}
	_, err = t.At(0x1004)
	return err
}

// TestDamage reads each prefix of a table, and the table with each byte changed.
func TestDamage(t *testing.T) {
	whole := Encode(built(t, 9)).Header
	for n := range whole {
		if err := use(whole[:n]); err == nil {
			t.Errorf("%d bytes of %d are a table", n, len(whole))
		} else if !errors.Is(err, symtab.ErrFormat) && !errors.Is(err, symtab.ErrVersion) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for i := range whole {
		b := append([]byte(nil), whole...)
		b[i] ^= 0x55
		_ = use(b) // an error or another table
	}
	if err := use(append([]byte(magic), Version+1, 0)); !errors.Is(err, symtab.ErrVersion) {
		t.Errorf("a newer version: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(Encode(built(f, 1)).Header)
	f.Add(Encode(built(f, 9)).Header)
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = use(b)
	})
}
