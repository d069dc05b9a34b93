package lookup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"symbolize/analyze/demangle"
	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

// cxxView holds an object of C++: a function in which another is inlined, with a table of
// debug information and one of symbols, where the outer one has another name.
func cxxView(t *testing.T, by *symtab.Demangler) store.View {
	t.Helper()
	opts := symtab.Options{InlineSize: -1}
	b := symtab.NewBuilder(opts)
	b.Demangle(by)
	span := []addr.Range{{Start: 0x1000, End: 0x1100}}
	b.AddFunction(&symtab.DebugFunc{
		Sub:    b.Sub(symtab.Subprogram{Name: []byte("_ZN4work3runERKSs")}),
		Ranges: span,
		Inlines: []symtab.Inline{{Sub: b.Sub(symtab.Subprogram{Name: []byte("_Z4leafIiEvT_")}),
			Parent: symtab.NoParent, Ranges: span}},
		Lines: []symtab.Line{{Addr: 0x1000, File: b.File([]byte("/src/work.cc")), Line: 7}},
	})
	debug := b.Encode()
	b = symtab.NewBuilder(opts)
	b.Demangle(by)
	b.Add(symtab.Func{Start: 0x1000, Size: 0x100, Name: "_ZN4workC1Ev"})
	return viewOf(t, store.NewSource{Info: store.SourceInfo{Kind: store.DWARF}, Table: debug},
		store.NewSource{Info: store.SourceInfo{Kind: store.Symtab}, Table: b.Encode()})
}

func viewOf(t *testing.T, sources ...store.NewSource) store.View {
	t.Helper()
	o := store.NewOverlay()
	err := o.Merge(context.Background(), &store.Contribution{
		Manifest: store.Manifest{ID: buildid.New([]byte{1}), Kind: ingest.ELF}, Sources: sources,
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func answer(t *testing.T, v store.View, o *Options) string {
	t.Helper()
	obj, err := OpenID(v, buildid.New([]byte{1}), "x", o)
	if err != nil {
		t.Fatal(err)
	}
	l := New(obj, o)
	defer l.Close()
	var out bytes.Buffer
	if err := l.Lines(&out, []byte("0x1010\n")); err != nil {
		t.Fatal(err)
	}
	if p := l.Problems(); len(p) > 0 {
		t.Error(p)
	}
	return out.String()
}

// TestStoredNames looks an address up in tables with and without demangled names, in every
// form: the same bytes come out.
func TestStoredNames(t *testing.T) {
	plain, stored := cxxView(t, nil), cxxView(t, Stored())
	for _, style := range []Style{LLVM, GNU, JSON} {
		for _, mode := range []demangle.Mode{demangle.Simple, demangle.Templates, demangle.Full, demangle.None} {
			o := Options{Style: style, Demangle: mode}
			want := answer(t, plain, &o)
			if got := answer(t, stored, &o); got != want {
				t.Errorf("style %d, %s:\n got %s\nwant %s", style, mode, got, want)
			}
			if full := "void leaf<int>(int)"; mode == demangle.Full && !strings.Contains(want, full) {
				t.Errorf("style %d has no %s: %s", style, full, want)
			}
		}
	}
}

// TestWantsStored looks up more distinct names than are worth storing, in every form: only those
// that can be stored are wanted, until they are.
func TestWantsStored(t *testing.T) {
	many := func(by *symtab.Demangler, names int) store.View {
		b := symtab.NewBuilder(symtab.Options{InlineSize: -1})
		b.Demangle(by)
		for n := range names {
			b.Add(symtab.Func{Start: addr.Addr(0x1000 + 16*n), Size: 16, Name: fmt.Sprintf("_Z5f%04dv", n)})
		}
		return viewOf(t, store.NewSource{Info: store.SourceInfo{Kind: store.Symtab}, Table: b.Encode()})
	}
	for _, test := range []struct {
		name string
		view store.View
		o    Options
		want bool
	}{
		{name: "many", view: many(nil, manyNames), o: Options{Demangle: demangle.Full}, want: true},
		{name: "few", view: many(nil, manyNames-1), o: Options{Demangle: demangle.Full}},
		{name: "stored", view: many(Stored(), manyNames), o: Options{Demangle: demangle.Full}},
		{name: "json", view: many(nil, manyNames), o: Options{Style: JSON, Demangle: demangle.Full}, want: true},
		{name: "gnu", view: many(nil, manyNames), o: Options{Style: GNU, Demangle: demangle.Full}},
		{name: "simple", view: many(nil, manyNames), o: Options{Demangle: demangle.Simple}},
		{name: "none", view: many(nil, manyNames), o: Options{Demangle: demangle.None}},
	} {
		t.Run(test.name, func(t *testing.T) {
			obj, err := OpenID(test.view, buildid.New([]byte{1}), "x", &test.o)
			if err != nil {
				t.Fatal(err)
			}
			l := New(obj, &test.o)
			defer l.Close()
			var text bytes.Buffer
			for n := range manyNames {
				fmt.Fprintf(&text, "%#x\n", 0x1000+16*n)
			}
			half := len(text.Bytes()) / 2 / 7 * 7 // in two batches
			for _, part := range [][]byte{text.Bytes()[:half], text.Bytes()[half:]} {
				if err := l.Lines(io.Discard, part); err != nil {
					t.Fatal(err)
				}
			}
			id, got := l.WantsStored()
			if got != test.want || id != buildid.New([]byte{1}) {
				t.Errorf("%v of %v, want %v", got, id, test.want)
			}
		})
	}
}

// TestStoredNamesUsed looks up in a table with distinct names: they are printed in their own style,
// and only if this program made them.
func TestStoredNamesUsed(t *testing.T) {
	mark := func(id string) *symtab.Demangler {
		return &symtab.Demangler{ID: id, Name: func(s string) string { return "stored " + s }}
	}
	tests := []struct {
		name string
		by   *symtab.Demangler
		o    Options
		want bool
	}{
		{name: "llvm", by: mark(Stored().ID), o: Options{Style: LLVM, Demangle: demangle.Full},
			want: true},
		{name: "json", by: mark(Stored().ID), o: Options{Style: JSON, Demangle: demangle.Full},
			want: true},
		{name: "gnu", by: mark(Stored().ID), o: Options{Style: GNU, Demangle: demangle.Full}},
		{name: "simple", by: mark(Stored().ID), o: Options{Style: LLVM, Demangle: demangle.Simple}},
		{name: "none", by: mark(Stored().ID), o: Options{Style: LLVM, Demangle: demangle.None}},
		{name: "another revision", by: mark("llvm full 1"),
			o: Options{Style: LLVM, Demangle: demangle.Full}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := answer(t, cxxView(t, test.by), &test.o)
			for _, name := range []string{"_Z4leafIiEvT_", "_ZN4workC1Ev"} {
				if strings.Contains(got, "stored "+name) != test.want {
					t.Errorf("%s stored: want %v: %s", name, test.want, got)
				}
			}
		})
	}
}

// TestNamesRevision holds the revision of stored names to the library's version: another
// version makes other names.
func TestNamesRevision(t *testing.T) {
	mod := must.Read(t, "../../go.mod")
	version := regexp.MustCompile(`ianlancetaylor/demangle \S+-([0-9a-f]{12})\n`).FindSubmatch(mod)
	if version == nil {
		t.Fatal("go.mod has no version of the demangler")
	}
	if want := fmt.Sprintf("%s.", version[1]); !strings.HasPrefix(demangle.Revision, want) {
		t.Errorf("NamesRevision is %s: the library is %s", demangle.Revision, want)
	}
}
