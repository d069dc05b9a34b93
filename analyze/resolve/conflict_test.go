package resolve

import (
	"fmt"
	"strings"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/symtab"
)

// TestConflict warns of files with one build ID that name sampled addresses differently, and of
// nothing else.
func TestConflict(t *testing.T) {
	moved := []elf.Segment{pie[0], {Offset: 0x1000, Addr: 0x402000, FileSize: 0x3000,
		MemSize: 0x3000, Flags: 5}, pie[2]}
	longer := []elf.Segment{pie[0], pie[1], {Offset: 0x3800, Addr: 0x405800, FileSize: 0x1000,
		MemSize: 0xa000, Flags: 6}}
	label := function("label", 0x401100, 0x40)
	label.Flags |= symtab.Unsized
	for _, tc := range []struct {
		name   string
		kind   store.SourceKind
		second []symtab.Func
		layout []elf.Segment // of the second file
		want   string        // in the warning; "" for none
	}{
		{name: "another build", kind: store.Symtab, second: []symtab.Func{
			function("gamma", 0x401100, 0x40)}, want: "alpha of /first, gamma of /second"},
		{name: "another build, debug information", kind: store.DWARF, second: []symtab.Func{
			function("gamma", 0x401100, 0x40)}, want: "alpha of /first, gamma of /second"},
		{name: "fewer symbols", kind: store.Symtab, second: []symtab.Func{
			function("beta", 0x401200, 0x40)}},
		{name: "differs where nothing was sampled", kind: store.Symtab, second: []symtab.Func{
			function("alpha", 0x401100, 0x40), function("other", 0x401200, 0x40)}},
		{name: "a label without a size", kind: store.Symtab, second: []symtab.Func{label}},
		{name: "a label without a size in a kernel's list", kind: store.Kallsyms,
			second: []symtab.Func{label}, want: "alpha of /first, label of /second"},
		{name: "guessed functions", kind: store.EhFrame, second: []symtab.Func{
			function("fun_401100", 0x401100, 0x40)}},
		{name: "other segments", kind: store.Symtab, layout: moved, second: []symtab.Func{
			function("alpha", 0x401100, 0x40)}, want: "their segments differ (offset 0x1110)"},
		{name: "segments that differ elsewhere", kind: store.Symtab, layout: longer,
			second: []symtab.Func{function("alpha", 0x401100, 0x40)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := store.NewOverlay()
			for i, funcs := range [][]symtab.Func{{function("alpha", 0x401100, 0x40),
				function("beta", 0x401200, 0x40), function("more", 0x401300, 0x400)}, tc.second} {
				c := store.Contribution{Manifest: store.Manifest{ID: id(1), Kind: ingest.ELF,
					Layout: pie}}
				if i == 1 && tc.layout != nil {
					c.Manifest.Layout = tc.layout
				}
				c.Sources = []store.NewSource{{Table: table(t, funcs...), Info: store.SourceInfo{
					Kind: tc.kind, Producer: 1, Path: []string{"/first", "/second"}[i]}}}
				if err := o.Merge(t.Context(), &c); err != nil {
					t.Fatal(err)
				}
			}
			p := one(ingest.Object{ID: id(1), File: ingest.FileRef{Path: "/bin/x"}},
				addr.Offset(0x1110))
			resolve(t, p, o)
			wantWarning(t, p, tc.want)
		})
	}
}

// TestMoved warns of debug information of another build than the stripped file, which has the
// functions elsewhere by its unwind table.
func TestMoved(t *testing.T) {
	for _, tc := range []struct {
		name  string
		kind  store.SourceKind
		moved int // of four functions
		want  string
	}{
		{name: "another build", kind: store.Symtab, moved: 4,
			want: "4 of 4 functions begin elsewhere by the unwind table of /x"},
		{name: "another build, debug information alone", kind: store.DWARF, moved: 3,
			want: "3 of 4 functions"},
		{name: "labels in assembly", kind: store.Symtab, moved: 2},
		{name: "the file's own symbols", kind: store.Dynsym, moved: 4},
		{name: "the same build", kind: store.Symtab},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var names, bounds []symtab.Func
			var offsets []addr.Offset
			for i := range 4 {
				at := 0x401000 + addr.Addr(i)*0x100
				bounds = append(bounds, function(fmt.Sprintf("fun_%x", at), at, 0x80))
				offsets = append(offsets, addr.Offset(at-0x400000+0x50), addr.Offset(at-0x400000+0x60))
				if i < tc.moved {
					at += 0x20
				}
				names = append(names, function(fmt.Sprintf("f%d", i), at, 0x70))
			}
			o := store.NewOverlay()
			contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: pie},
				map[store.SourceKind]*symtab.Encoded{tc.kind: table(t, names...),
					store.EhFrame: table(t, bounds...)})
			p := one(ingest.Object{ID: id(1), File: ingest.FileRef{Path: "/bin/x"}}, offsets...)
			resolve(t, p, o)
			wantWarning(t, p, tc.want)
		})
	}
}

// TestPadding warns where places of a kernel have the names of padding, as with the list of another
// kernel: of an interrupt at a first byte there are few.
func TestPadding(t *testing.T) {
	for _, tc := range []struct {
		name            string
		inside, padding int
		want            string
	}{
		{name: "another kernel", inside: 20, padding: 3, want: "3 of 23 places lie between functions"},
		{name: "two", inside: 20, padding: 2},
		{name: "few of many", inside: 200, padding: 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := store.NewOverlay()
			contribute(t, o, store.Manifest{ID: id(3), Kind: ingest.Kernel, RefSyms: []store.RefSymbol{
				{Name: "_text"}}}, map[store.SourceKind]*symtab.Encoded{store.Kallsyms: table(t,
				function("_text", 0, 0x10), function("work", 0x10, 0x1000),
				function("__pfx_rest", 0x1010, 0x10))})
			var offsets []addr.Offset
			for i := range tc.inside {
				offsets = append(offsets, 0x20+addr.Offset(i))
			}
			for i := range tc.padding {
				offsets = append(offsets, 0x1010+addr.Offset(i))
			}
			p := one(ingest.Object{Kind: ingest.Kernel, ID: id(3), RefSymbol: "_text",
				File: ingest.FileRef{Path: "[kernel.kallsyms]"}}, offsets...)
			resolve(t, p, o)
			wantWarning(t, p, tc.want)
		})
	}
}

// wantWarning wants a warning of the names that contains a text, or none for "".
func wantWarning(t *testing.T, p *ingest.Profile, want string) {
	t.Helper()
	got := ""
	for _, w := range p.Names.Warnings {
		got += w.Text + "\n"
	}
	if (want == "") != (got == "") || !strings.Contains(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}
