package resolve

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

const bpfSymbol = "bpf_prog_0123456789abcdef_pass"

func jitID(text string) buildid.ID { return buildid.Make(buildid.JIT, []byte(text)) }

// lineTable is the table of a function of 64 bytes that starts on line 10.
func lineTable(t testing.TB, symbol string, firstLine uint32) *symtab.Encoded {
	t.Helper()
	b := symtab.NewBuilder(symtab.Options{Columns: true})
	file, header := b.File([]byte("src/pass.bpf.c")), b.File([]byte("inc.h"))
	b.AddFunction(&symtab.DebugFunc{
		Sub:    b.Sub(symtab.Subprogram{Name: []byte(symbol), File: file, Line: firstLine}),
		Ranges: []addr.Range{{Start: 0, End: 64}},
		Lines: []symtab.Line{{Addr: 0, File: file, Line: firstLine},
			{Addr: 8, File: file, Line: firstLine + 2, Column: 5}, {Addr: 40, File: header, Line: 3}},
	})
	return b.Encode()
}

// addFunction merges a BPF function with one load, with or without its image.
func addFunction(t testing.TB, o *store.Overlay, id buildid.ID, image bool, table *symtab.Encoded) {
	t.Helper()
	entry, err := o.PutBlob(t.Context(), []byte("entry"))
	if err != nil {
		t.Fatal(err)
	}
	v := store.Variant{Entry: entry}
	if image {
		v.Image = store.NewBlobID([]byte("image"))
	}
	err = o.Merge(t.Context(), &store.Contribution{
		Manifest: store.Manifest{ID: id, Kind: ingest.JIT, Variants: []store.Variant{v}},
		Sources:  []store.NewSource{{Info: store.SourceInfo{Kind: store.JIT, Path: "/c"}, Table: table}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func addProbable(t testing.TB, o *store.Overlay, id buildid.ID, of ...buildid.ID) {
	t.Helper()
	err := o.Merge(t.Context(), &store.Contribution{
		Manifest: store.Manifest{ID: id, Kind: ingest.JIT, Probable: of}})
	if err != nil {
		t.Fatal(err)
	}
}

// lined prints the answers with lines: "name+0xOFF file:line:column from LINE", and the missing
// ones.
func lined(p *ingest.Profile) string {
	var words []string
	for l := range p.Locations {
		word := p.Names.Reasons[l].String()
		for _, f := range p.Names.At(ingest.LocationID(l)) {
			fn := p.Names.Functions[f.Func]
			word = fmt.Sprintf("%s+%#x", fn.SystemName, p.Names.SymOff[l])
			if f.Line > 0 {
				word += fmt.Sprintf(" %s:%d:%d from %d", fn.File, f.Line, f.Column, fn.StartLine)
			}
			if r := p.Names.Reasons[l]; r != ingest.ReasonNone {
				word += ", " + r.String()
			}
			if !p.Names.Named(ingest.LocationID(l)) {
				word += ", not named"
			}
		}
		words = append(words, word)
	}
	for id, of := range p.Names.Probable {
		words = append(words, fmt.Sprintf("%d probably %s", id, of))
	}
	return strings.Join(words, "; ")
}

func TestResolveJIT(t *testing.T) {
	o := store.NewOverlay()
	exact, imageless, other := jitID("exact"), jitID("imageless"), jitID("other")
	addFunction(t, o, exact, true, lineTable(t, "bpf_prog_ffffffffffffffff_pass", 10))
	addFunction(t, o, imageless, false, lineTable(t, bpfSymbol, 10))
	addFunction(t, o, other, true, lineTable(t, bpfSymbol, 20))
	addProbable(t, o, jitID("one"), exact)
	addProbable(t, o, jitID("two"), exact, other)
	addProbable(t, o, jitID("gone"), jitID("nowhere"))
	addProbable(t, o, exact, other) // it has a table of its own
	object := func(id buildid.ID, noImage bool) ingest.Object {
		return ingest.Object{Kind: ingest.JIT, ID: id, Symbol: bpfSymbol, Length: 64, NoImage: noImage,
			File: ingest.FileRef{Path: bpfSymbol}}
	}
	const (
		names = bpfSymbol + "+0x0; " + bpfSymbol + "+0x9; " + bpfSymbol + "+0x28"
		lines = bpfSymbol + "+0x0 src/pass.bpf.c:10:0 from 10; " + bpfSymbol +
			"+0x9 src/pass.bpf.c:12:5 from 10; " + bpfSymbol + "+0x28 inc.h:3:0 from 0"
	)
	missing := func(s string) string {
		return strings.ReplaceAll(s, ";", ", image not captured;") + ", image not captured"
	}
	for _, c := range []struct {
		name   string
		object ingest.Object
		want   string
	}{
		{name: "table and image", object: object(exact, false), want: lines},
		{name: "image in the store", object: object(exact, true), want: lines},
		{name: "lines and no image", object: object(imageless, true), want: missing(lines)},
		{name: "nothing", object: object(jitID("unknown"), false), want: names},
		{name: "nothing, and no image", object: object(jitID("unknown"), true),
			want: missing(names)},
		{name: "probable", object: object(jitID("one"), true),
			want: missing(lines) + "; 0 probably " + exact.String()},
		{name: "one of two", object: object(jitID("two"), true), want: missing(names)},
		{name: "probable and gone", object: object(jitID("gone"), true), want: missing(names)},
		{name: "no ID", object: object(buildid.ID{}, false), want: names},
		{name: "ID of a file", object: object(id(1), false), want: names},
	} {
		p := one(c.object, 0, 9, 40)
		resolve(t, p, o)
		if got := lined(p); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
		resolve(t, p, o) // missing names are tried again
		if got := lined(p); got != c.want {
			t.Errorf("%s, again:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestResolveJITBeyond asks for places that the table does not reach: the name holds
// for the whole object.
func TestResolveJITBeyond(t *testing.T) {
	o := store.NewOverlay()
	addFunction(t, o, jitID("exact"), true, lineTable(t, bpfSymbol, 10))
	p := one(ingest.Object{Kind: ingest.JIT, ID: jitID("exact"), Symbol: bpfSymbol, Length: 99},
		63, 64, 90)
	resolve(t, p, o)
	want := bpfSymbol + "+0x3f inc.h:3:0 from 0; " + bpfSymbol + "+0x40; " + bpfSymbol + "+0x5a"
	if got := lined(p); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// jitDamage is a view with manifests or tables that cannot be read.
type jitDamage struct {
	store.View
	find bool
}

func (d jitDamage) Find(id buildid.ID) ([]*store.Manifest, error) {
	if d.find {
		return nil, store.ErrDamaged
	}
	return d.View.Find(id)
}

func (d jitDamage) Open(*store.Manifest, int) (*symtab.Table, error) {
	return nil, errors.New("blocks are lost")
}

// TestResolveJITDamaged keeps the names and reports the unreadable parts.
func TestResolveJITDamaged(t *testing.T) {
	o := store.NewOverlay()
	addFunction(t, o, jitID("exact"), true, lineTable(t, bpfSymbol, 10))
	for _, find := range []bool{false, true} {
		p := one(ingest.Object{Kind: ingest.JIT, ID: jitID("exact"), Symbol: bpfSymbol}, 0, 9)
		resolve(t, p, jitDamage{o, find})
		if got := lined(p); got != bpfSymbol+"+0x0; "+bpfSymbol+"+0x9" {
			t.Errorf("find %v: %s", find, got)
		}
		if len(p.Names.Warnings) != 1 || !p.Names.Warnings[0].Partial {
			t.Errorf("find %v: warnings %v", find, p.Names.Warnings)
		}
	}
}

// TestResolveJITSymbols: two loads that captures call by other tags are one function each by
// its own name, with the lines of the one table.
func TestResolveJITSymbols(t *testing.T) {
	o := store.NewOverlay()
	addFunction(t, o, jitID("exact"), true, lineTable(t, bpfSymbol, 10))
	addFunction(t, o, jitID("exact"), true, lineTable(t, "bpf_prog_eeeeeeeeeeeeeeee_pass", 10))
	for _, symbol := range []string{bpfSymbol, "bpf_prog_eeeeeeeeeeeeeeee_pass", "bpf_prog_1_x"} {
		p := one(ingest.Object{Kind: ingest.JIT, ID: jitID("exact"), Symbol: symbol}, 9)
		resolve(t, p, o)
		if got, want := lined(p), symbol+"+0x9 src/pass.bpf.c:12:5 from 10"; got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}
