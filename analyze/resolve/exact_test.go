package resolve

import (
	"slices"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

// TestExact: exact addresses are found by the functions around them.
func TestExact(t *testing.T) {
	o := store.NewOverlay()
	debug := symtab.NewBuilder(symtab.Options{})
	debug.AddFunction(&symtab.DebugFunc{Sub: debug.Sub(symtab.Subprogram{Name: []byte("debugged")}),
		Ranges: []addr.Range{{Start: 0x402100, End: 0x402180}}})
	lines := debug.Encode()
	contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: pie},
		map[store.SourceKind]*symtab.Encoded{
			store.DWARF: lines,
			store.Symtab: table(t,
				function("first", 0x401000, 0x37), function("padded", 0x401040, 0x40),
				function("adjacent", 0x401080, 0x10), function("odd", 0x401095, 0x10),
				function("__restore_rt", 0x401100, 0x9),
				function("before", 0x401110, 0x10),
				function("runtime.sigreturn__sigaction.abi0", 0x401120, 0x9),
				symtab.Func{Name: "_start", Start: 0x401200, Size: 0x38, Flags: symtab.Unsized},
				function("_dl_start_user", 0x401238, 0x8),
				symtab.Func{Name: "register_tm_clones", Start: 0x401250, Size: 0x30, Flags: symtab.Unsized},
				function("__do_global_dtors_aux", 0x401280, 0x10)),
		})
	contribute(t, o, store.Manifest{ID: id(3), Kind: ingest.ELF, Layout: pie},
		map[store.SourceKind]*symtab.Encoded{store.EhFrame: table(t,
			function("fun_401000", 0x401000, 0x2f),
			function(ingest.SignalPrefix+"40102f", 0x40102f, 0xa),
			function("fun_401040", 0x401040, 0x10),
			function(ingest.SignalPrefix+"401050", 0x401050, 0xa))})
	contribute(t, o, store.Manifest{ID: id(2), Kind: ingest.Kernel},
		map[store.SourceKind]*symtab.Encoded{
			store.Kallsyms: table(t,
				function("caller", 0xf00, 0xf0),
				function("__pfx_release_sock", 0xff0, 0x10),
				function("release_sock", 0x1000, 0x80),
				function("behind", 0x1080, 0x80),
				symtab.Func{Name: "start_kernel", Start: 0x2000, Size: 0x100, Flags: symtab.Unsized},
				function("__pfx_clear_bss", 0x2100, 0x10)),
		})
	elf := ingest.Object{Kind: ingest.ELF, ID: id(1)}
	stripped := ingest.Object{Kind: ingest.ELF, ID: id(3)}
	kernel := ingest.Object{Kind: ingest.Kernel, ID: id(2), RefSymbol: "_text"}
	for _, tc := range []struct {
		name   string
		object ingest.Object
		at     addr.Offset
		exact  bool
	}{
		{name: "start of a function with padding before it", object: elf, at: 0x1040, exact: true},
		{name: "inside of a function", object: elf, at: 0x1048},
		{name: "behind another function, which may end with a call", object: elf, at: 0x1080},
		{name: "end of a function with padding behind it", object: elf, at: 0x1090},
		{name: "start that is not aligned", object: elf, at: 0x1095},
		{name: "restorer", object: elf, at: 0x1100, exact: true},
		{name: "restorer behind another function", object: elf, at: 0x1120, exact: true},
		{name: "inside of a restorer", object: elf, at: 0x1128},
		{name: "label behind a function whose size is not known", object: elf, at: 0x1238},
		{name: "function behind one whose size is not known", object: elf, at: 0x1280,
			exact: true},
		{name: "start of a function that debug information has", object: elf, at: 0x2100,
			exact: true},
		{name: "inside of it", object: elf, at: 0x2108},
		{name: "no function", object: elf, at: 0x3000},
		{name: "no segment", object: elf, at: 0x900000},
		{name: "signal frame of an unwind table, a byte early", object: stripped, at: 0x1030,
			exact: true},
		{name: "inside of it", object: stripped, at: 0x1038},
		{name: "signal frame of an unwind table", object: stripped, at: 0x1050, exact: true},
		{name: "behind the padding of a kernel", object: kernel, at: 0x1000, exact: true},
		{name: "behind another of the kernel's functions", object: kernel, at: 0x1080},
		{name: "behind the call of a function that does not return", object: kernel, at: 0x2100},
		{name: "the padding itself", object: kernel, at: 0xff0},
		{name: "nothing is known of the object",
			object: ingest.Object{Kind: ingest.ELF, ID: id(9)}, at: 0x1040},
		{name: "no build ID", object: ingest.Object{Kind: ingest.ELF}, at: 0x1040},
		{name: "code that has no tables",
			object: ingest.Object{Kind: ingest.ELF, ID: id(1), Reason: ingest.NoBuildID},
			at:     0x1040},
	} {
		if got := Exact(o)(&tc.object, []addr.Offset{tc.at}); (len(got) == 1) != tc.exact {
			t.Errorf("%s: %#x", tc.name, got)
		}
	}
	// Many at once, and in order.
	var all []addr.Offset
	for off := addr.Offset(0x1000); off < 0x4000; off++ {
		all = append(all, off)
	}
	want := []addr.Offset{0x1000, 0x1040, 0x1100, 0x1110, 0x1120, 0x1200, 0x1250, 0x1280, 0x2100}
	if got := Exact(o)(&elf, all); !slices.Equal(got, want) {
		t.Errorf("of all offsets %#x, want %#x", got, want)
	}
}
