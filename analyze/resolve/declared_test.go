package resolve_test

import (
	"os"
	"path/filepath"
	"testing"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest/object/bpf"
	"symbolize/store"
	"symbolize/store/bpfprog"
	"symbolize/store/indexer"
)

// declaredView knows the functions of BPF object files, and bcc's files: of tag 1 one
// function, of tag 2 two of one name, of tag 3 two of different names.
func declaredView(t *testing.T, more ...string) store.View {
	t.Helper()
	overlay := store.NewOverlay()
	var objects []string
	for _, name := range append(more, "count.bpf.o") {
		objects = append(objects,
			filepath.Join("..", "..", "ingest", "object", "bpfobj", "testdata", name))
	}
	_, err := indexer.Index(t.Context(), objects, nil,
		func() (store.Sink, error) { return overlay, nil }, indexer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range [][]string{
		{"bpf_prog_1/one.c", "bpf_prog_2/two.c", "bpf_prog_3/three.c"},
		{"bpf_prog_2/two.c", "bpf_prog_3/trois.c"},
	} {
		dir := t.TempDir()
		for _, name := range files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			must.Write(t, path, nil)
		}
		stats, err := bpfprog.AddBCC(t.Context(), overlay, dir)
		if err != nil || len(stats.Problems) > 0 || stats.Programs != len(files) {
			t.Fatalf("%+v, %v", stats, err)
		}
	}
	return overlay
}

func TestDeclare(t *testing.T) {
	const (
		full    = "count_system_calls_on_enter"
		file    = "/srv/app/src/count.bpf.c"
		strange = "bpf_prog_ffffffffffffffff"
	)
	view := declaredView(t)
	all := countOf(t, view)
	for _, c := range []struct {
		name, symbol string
		others       []buildid.ID
		want         resolve.Declared // without ID; File "*" is any
	}{
		{name: "by tag", symbol: "bpf_prog_91621db7a64bdc62",
			want: resolve.Declared{Name: full, File: file, Line: 41}},
		{name: "by tag and the name as the kernel cut it",
			symbol: "bpf_prog_91621db7a64bdc62_" + full[:15],
			want:   resolve.Declared{Name: full, File: file, Line: 41}},
		{name: "a name cut elsewhere is another one",
			symbol: "bpf_prog_91621db7a64bdc62_" + full[:14],
			want:   resolve.Declared{}},
		{name: "another name", symbol: "bpf_prog_91621db7a64bdc62_other",
			want: resolve.Declared{}},
		{name: "by name and number of instructions", symbol: strange + "_" + full[:15],
			others: all,
			want:   resolve.Declared{Name: full, File: file, Line: 41, Probable: true}},
		{name: "by number, another name", symbol: strange + "_other", others: all,
			want: resolve.Declared{}},
		{name: "the tag first", symbol: "bpf_prog_0000000000000001", others: all,
			want: resolve.Declared{Name: "one", File: "*", Line: 1}},
		{name: "one name in two files", symbol: "bpf_prog_0000000000000002",
			want: resolve.Declared{Name: "two", Differ: true}},
		{name: "two names", symbol: "bpf_prog_0000000000000003",
			want: resolve.Declared{Several: true}},
		{name: "two names, told which", symbol: "bpf_prog_0000000000000003_trois",
			want: resolve.Declared{Name: "trois", File: "*", Line: 1}},
		{name: "a subprogram by its own tag", symbol: "bpf_prog_d45027060d1d16e6_mix_bits",
			want: resolve.Declared{Name: "mix_bits", File: file, Line: 12}},
		{name: "a subprogram that was loaded without BTF", symbol: "bpf_prog_d45027060d1d16e6_F",
			want: resolve.Declared{Name: "mix_bits", File: file, Line: 12}},
		{name: "nothing known", symbol: strange, want: resolve.Declared{}},
		{name: "no BPF program", symbol: "do_syscall_64", want: resolve.Declared{}},
		{name: "no tag", symbol: "bpf_prog_xyz", want: resolve.Declared{}},
	} {
		got, err := resolve.Declare(view, c.symbol, c.others)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got.Name != "" && got.ID.IsZero() {
			t.Errorf("%s: no object tells it", c.name)
		}
		got.ID = buildid.ID{}
		if c.want.File == "*" && got.File != "" {
			got.File = "*"
		}
		if got != c.want {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
}

// TestDeclareByName: a name leads to functions without a tag that is the same on all hosts, and
// where it leads to another tag, that is known.
func TestDeclareByName(t *testing.T) {
	view := declaredView(t, "shapes.bpf.o")
	const strange = "bpf_prog_ffffffffffffffff"
	for symbol, want := range map[string]resolve.Declared{
		strange + "_mix_bits": {Name: "mix_bits", File: "/srv/app/src/count.bpf.c", Line: 12,
			Probable: true},
		strange + "_count_system_ca": {Name: "count_system_calls_on_enter",
			File: "/srv/app/src/count.bpf.c", Line: 41, Probable: true},
		strange + "_nothing": {OtherTag: true}, strange + "_F": {}, strange: {}, strange + "_": {},
		strange + "_unknown": {}, "do_syscall_64": {},
	} {
		got, err := resolve.DeclareByName(view, symbol)
		got.ID = buildid.ID{}
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, not %+v", symbol, got, err, want)
		}
	}
}

// countOf returns the ID under which the object file's program is entered by its name and
// its number of instructions.
func countOf(t *testing.T, view store.View) []buildid.ID {
	t.Helper()
	const most = 1000
	for n := range uint32(most) {
		id := bpf.CountIdentity("count_system_calls_on_enter", n)
		if found, err := view.Find(id); err == nil && len(found) == 1 {
			return []buildid.ID{id}
		}
	}
	t.Fatal("the program is not entered under its number of instructions")
	return nil
}

// TestWholeSymbol: the tag proves the rest of a cut name, and the name of a subprogram.
func TestWholeSymbol(t *testing.T) {
	view := declaredView(t)
	const tag, own = "bpf_prog_91621db7a64bdc62", "bpf_prog_d45027060d1d16e6"
	for symbol, want := range map[string]string{
		tag + "_count_system_ca":             tag + "_count_system_calls_on_enter",
		tag + "_count_system_calls_on_enter": tag + "_count_system_calls_on_enter",
		tag:                                  tag + "_count_system_calls_on_enter",
		tag + "_count_system_cb":             tag + "_count_system_cb",
		tag + "_count_system":                tag + "_count_system",
		"bpf_prog_ffffffffffffffff_count_system_ca": "bpf_prog_ffffffffffffffff_count_system_ca",
		own + "_F":                    own + "_mix_bits",
		"bpf_prog_0000000000000003_F": "bpf_prog_0000000000000003_F", // of two names
		"do_syscall_64":               "do_syscall_64",
	} {
		if got := resolve.WholeSymbol(view, symbol); got != want {
			t.Errorf("%s: %s, not %s", symbol, got, want)
		}
	}
}
