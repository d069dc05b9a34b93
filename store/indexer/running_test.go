package indexer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/object/symlist"
)

func TestRunning(t *testing.T) {
	kernel, ext4 := buildid.New([]byte(kernelID)), buildid.New([]byte(ext4ID))
	sys := fakeSystem(t, 0xffffffff81000000)
	r := openRunning(sys)
	other := buildid.New([]byte("another one"))
	for _, c := range []struct {
		name string
		o    ingest.Object
		want bool
	}{
		{name: "kernel", o: ingest.Object{Kind: ingest.Kernel, ID: kernel}, want: true},
		{name: "another kernel", o: ingest.Object{Kind: ingest.Kernel, ID: other}},
		{name: "module",
			o:    ingest.Object{Kind: ingest.Module, ID: ext4, File: ingest.FileRef{Path: "[ext4]"}},
			want: true},
		{name: "another module of this name",
			o: ingest.Object{Kind: ingest.Module, ID: other, File: ingest.FileRef{Path: "[ext4]"}}},
		{name: "module without notes",
			o: ingest.Object{Kind: ingest.Module, ID: ext4, File: ingest.FileRef{Path: "[noid]"}}},
		{name: "hostile name", o: ingest.Object{Kind: ingest.Module, ID: ext4,
			File: ingest.FileRef{Path: "[../module/ext4]"}}},
		{name: "program", o: ingest.Object{Kind: ingest.ELF, ID: kernel}},
		{name: "no vdso is mapped", o: ingest.Object{Kind: ingest.VDSO, ID: kernel}},
	} {
		if got := r.Has(&c.o); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if err := r.NamesErr(); err != nil {
		t.Error(err)
	}
	must.Write(t, filepath.Join(string(sys), "proc/kallsyms"), []byte("0000000000000000 T _text\n"))
	if err := r.NamesErr(); !errors.Is(err, symlist.ErrRestricted) {
		t.Error(err)
	}
	os.Remove(filepath.Join(string(sys), "proc/kallsyms"))
	if err := r.NamesErr(); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if openRunning(sysRoot(t.TempDir())).Kernel(kernel) {
		t.Error("a kernel without notes has an ID")
	}
}

func TestFileRow(t *testing.T) {
	root := realDir(t)
	must.Write(t, filepath.Join(root, "mixed"), fixture(t, "bin/mixed"))
	must.Write(t, filepath.Join(root, "noid"), withoutID(t, fixture(t, "bin/fixed")))
	must.Write(t, filepath.Join(root, "text"), []byte("text"))
	if err := os.Symlink("mixed", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	m := newMemory()
	m.index(t, Options{}, root)
	rows, _, _ := m.Dir(root)
	for name, as := range map[string]string{"mixed": "mixed", "noid": "noid", "link": "mixed"} {
		row, err := FileRow(filepath.Join(root, name), true)
		want := rows.Find(as)
		if err != nil || want == nil || row.ID != want.ID || row.ID.IsZero() ||
			!row.Proof().Same(want.Proof()) || row.Producer != 0 {
			t.Errorf("%s: %+v, %v, want %+v", name, row, err, want)
		}
	}
	if row, err := FileRow(filepath.Join(root, "noid"), false); err != nil || !row.ID.IsZero() {
		t.Errorf("without the hash of the content: %+v, %v", row, err)
	}
	core := fixture(t, "bin/fixed")
	core[16] = 4 // e_type: ET_CORE
	must.Write(t, filepath.Join(root, "core"), withoutID(t, core))
	if row, err := FileRow(filepath.Join(root, "core"), true); err != nil || !row.ID.IsZero() {
		t.Errorf("a core dump: %+v, %v", row, err)
	}
	for _, name := range []string{"text", "nothing", "."} {
		if row, err := FileRow(filepath.Join(root, name), true); err == nil || !row.ID.IsZero() {
			t.Errorf("%s: %+v, %v", name, row, err)
		}
	}
}

// TestOfRelease: a release is the running kernel's, to the last letter.
func TestOfRelease(t *testing.T) {
	sys := fakeSystem(t, 0xffffffff81000000)
	if got := openRunning(sys).OfRelease(""); !got.IsZero() {
		t.Errorf("without a release: %v", got)
	}
	must.Write(t, sys.path("/proc/sys/kernel/osrelease"), []byte("6.1.0-test\n"))
	r := openRunning(sys)
	for release, want := range map[string]buildid.ID{"6.1.0-test": buildid.New([]byte(kernelID)),
		"6.1.0-test2": {}, "6.1.0": {}} {
		if got := r.OfRelease(release); got != want {
			t.Errorf("%s: %v, want %v", release, got, want)
		}
	}
}

// TestRunningProves wants all that is recorded to be of the running kernel, and of this boot.
func TestRunningProves(t *testing.T) {
	const base, boot = 0xffffffff81000000, 1_700_000_000
	sys := fakeSystem(t, base)
	must.Write(t, sys.path("/proc/sys/kernel/osrelease"), []byte("6.1.0-test\n"))
	must.Write(t, sys.path("/proc/stat"), []byte("cpu 1 2\nbtime 1700000000\nprocesses 9\n"))
	r := openRunning(sys)
	good := Recorded{Release: "6.1.0-test", Symbol: "_text", Address: base, End: (boot + 2) * 1e9}
	for _, c := range []struct {
		name   string
		change func(*Recorded)
		want   bool
	}{
		{name: "the same", change: func(*Recorded) {}, want: true},
		{name: "by _stext",
			change: func(rec *Recorded) { rec.Symbol, rec.Address = "_stext", base+0x100 },
			want:   true},
		{name: "another release", change: func(rec *Recorded) { rec.Release = "6.1.0-test2" }},
		{name: "no release", change: func(rec *Recorded) { rec.Release = "" }},
		{name: "another place", change: func(rec *Recorded) { rec.Address += 0x200000 }},
		{name: "hidden", change: func(rec *Recorded) { rec.Address = 0 }},
		{name: "another symbol", change: func(rec *Recorded) { rec.Symbol = "nothing" }},
		{name: "a module's symbol", change: func(rec *Recorded) {
			rec.Symbol, rec.Address = "ext4_read", base+0x20000000
		}},
		{name: "of an earlier boot", change: func(rec *Recorded) { rec.End = boot * 1e9 }},
		{name: "of no known time", change: func(rec *Recorded) { rec.End = 0 }},
	} {
		rec := good
		c.change(&rec)
		if got := r.Proves(rec); got != (buildid.ID{}) != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	must.Write(t, sys.path("/proc/stat"), []byte("btime x\n"))
	if got := r.Proves(good); !got.IsZero() {
		t.Errorf("without the time of the boot: %s", got)
	}
}
