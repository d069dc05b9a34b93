package record

import (
	"path/filepath"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/history"
)

// TestPossibleCPUs: the number of values in an entry of a per-CPU map.
func TestPossibleCPUs(t *testing.T) {
	for _, tc := range []struct {
		name, list string
		want       int
	}{
		{name: "a range", list: "0-3\n", want: 4},
		{name: "one", list: "0\n", want: 1},
		{name: "with gaps", list: "0-1,6-7\n", want: 8},
		{name: "empty", list: "\n"},
		{name: "no list", list: "all\n"},
		{name: "unknown"},
	} {
		r := newTestRoot(t)
		if tc.list != "" {
			r.write("sys/devices/system/cpu/possible", tc.list)
		}
		if got := possibleCPUs(&r.recording(&Options{}).host); got != tc.want {
			t.Errorf("%s: %d CPUs, want %d", tc.name, got, tc.want)
		}
	}
}

// TestKnownElsewhere: the kernel's symbols are left out only if they are known elsewhere and the
// kernel's range is known.
func TestKnownElsewhere(t *testing.T) {
	const id = "0102030405060708090a0b0c0d0e0f1011121314"
	for _, tc := range []struct {
		name, id, text string
		known          func(buildid.ID) bool
		want           bool
	}{
		{name: "known", id: id, text: "ffffffff81000000",
			known: func(got buildid.ID) bool { return got.Hex() == id }, want: true},
		{name: "another kernel", id: id, text: "ffffffff81000000",
			known: func(buildid.ID) bool { return false }},
		{name: "no store", id: id, text: "ffffffff81000000"},
		{name: "hidden addresses", id: id, text: "0000000000000000",
			known: func(buildid.ID) bool { return true }},
		{name: "no build ID", text: "ffffffff81000000", known: func(buildid.ID) bool { return true }},
	} {
		r := newTestRoot(t)
		list := tc.text + " T _text\n" + tc.text + " T other\n"
		r.write("proc/kallsyms", list)
		s := r.recording(&Options{KnownKernel: tc.known})
		s.manifest.KernelBuildID = tc.id
		k := &kernel{s: s, modules: newModules(s)}
		got := entriesOf(t, bundleOf(t, k.add))[bundle.KallsymsName]
		if tc.want {
			list = tc.text + " T _text\n"
		}
		if got != list || s.manifest.KernelOmitted != tc.want {
			t.Errorf("%s: omitted: %v, symbols %q", tc.name, s.manifest.KernelOmitted, got)
		}
	}
}

// TestKallsymsOnce: a file has kallsyms again only after code was loaded, unloaded or lost.
func TestKallsymsOnce(t *testing.T) {
	r := newTestRoot(t)
	r.write("proc/kallsyms", "ffffffff81000000 T _text\n")
	s := r.recording(&Options{})
	k := &kernel{s: s, modules: newModules(s), changes: history.NewCodeLog(func() {}, func() {})}
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{name: "first", do: func() {}, want: true},
		{name: "nothing", do: func() {}},
		{name: "a load", do: func() { k.changes.Add(5, 1<<40, 10) }, want: true},
		{name: "nothing again", do: func() {}},
		{name: "a loss", do: func() { k.changes.Lost(6, 7) }, want: true},
		{name: "another file", do: k.newFile, want: true},
	} {
		step.do()
		_, got := entriesOf(t, bundleOf(t, k.add))[bundle.KallsymsName]
		if got != step.want {
			t.Errorf("%s: added: %v", step.name, got)
		}
	}
}

// TestVDSOMappings: damaged mappings of the vdso are errors.
func TestVDSOMappings(t *testing.T) {
	for _, tc := range []struct{ name, maps string }{
		{name: "none", maps: "1000-2000 r-xp 00000000 08:01 5 /bin/a\n"},
		{name: "no range", maps: "x-y r-xp 00000000 00:00 0 [vdso]\n"},
		{name: "empty", maps: "2000-2000 r-xp 00000000 00:00 0 [vdso]\n"},
		{name: "too large", maps: "1000-7fff0000 r-xp 00000000 00:00 0 [vdso]\n"},
		{name: "no memory", maps: "1000-2000 r-xp 00000000 00:00 0 [vdso]\n"},
	} {
		r := newTestRoot(t)
		r.write("proc/self/maps", tc.maps)
		if image, id, err := ownVDSO(&r.recording(&Options{}).host); err == nil {
			t.Errorf("%s: %d bytes, build ID %s", tc.name, len(image), id)
		}
	}
	r := newTestRoot(t)
	r.write("proc/self/maps", "0-1000 r-xp 00000000 00:00 0 [vdso]\n")
	must.Write(t, filepath.Join(r.dir, "proc/self/mem"), make([]byte, 1<<12))
	if _, _, err := ownVDSO(&r.recording(&Options{}).host); err == nil {
		t.Error("zeros are an ELF file")
	}
}
