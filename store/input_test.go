package store

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/store/symtab"
)

// inputTable returns a table of some functions.
func inputTable(n int) *symtab.Encoded {
	b := symtab.NewBuilder(symtab.Options{})
	for i := range n {
		b.Add(symtab.Func{Start: addr.Addr(0x1000 + 0x40*i), Size: 0x20, Name: fmt.Sprintf("function_%d_%d", n, i)})
	}
	return b.Encode()
}

// TestInputTruncated cuts an input everywhere, and changes each byte: an error, never another table.
func TestInputTruncated(t *testing.T) {
	sources := []NewSource{
		{Info: SourceInfo{Kind: Symtab}, Table: inputTable(9), Raw: []byte("raw")},
		{Info: SourceInfo{Kind: PLT}, Table: inputTable(3)},
	}
	in := EncodeInput(sources)
	whole := bytes.Join(in.Parts, nil)
	if int64(len(whole)) != in.Size || sources[0].Info.Input != in.ID || sources[1].Info.RawInput != (Digest{}) {
		t.Fatalf("%d bytes of %d, %+v", len(whole), in.Size, sources[0].Info)
	}
	read := func(b []byte) error {
		got, err := ReadInput(in.ID, bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return err
		}
		for _, s := range sources {
			found, err := got.Source(s.Info.Kind, s.Table.Digest)
			if err != nil {
				return err
			}
			var buf []byte
			header, err := got.Read(bytes.NewReader(b), found.Header(), &buf)
			if err != nil {
				return err
			}
			if !bytes.Equal(header, s.Table.Header) {
				t.Error("another header")
			}
			raw, err := got.UnpackRaw(bytes.NewReader(b), found)
			if err != nil {
				return err
			}
			if !bytes.Equal(raw, s.Raw) {
				t.Errorf("captured input %q", raw)
			}
		}
		return nil
	}
	if err := read(whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := read(whole[:n]); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
		c := bytes.Clone(whole)
		c[n] ^= 0x55
		if err := read(c); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: %v", n, err)
		}
	}
}

func FuzzInput(f *testing.F) {
	in := EncodeInput([]NewSource{
		{Info: SourceInfo{Kind: Symtab}, Table: inputTable(9), Raw: []byte("raw")}})
	f.Add(bytes.Join(in.Parts, nil))
	f.Add([]byte(inputHead))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ReadInput(Digest{}, bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		var buf []byte
		for i := range got.Sources {
			s := &got.Sources[i]
			for _, p := range s.parts {
				got.Read(bytes.NewReader(b), p, &buf)
			}
			if s.RawSize < 1<<20 {
				got.UnpackRaw(bytes.NewReader(b), s)
			}
		}
	})
}
