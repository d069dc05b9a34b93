package input

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

// sharedModule is where the module of a number is loaded.
func sharedModule(i int) uint64 { return 0xffffffffc0900000 + uint64(i)*0x10000 }

// TestSharedModuleIDs: a build ID shared by several modules of a recording identifies none of them.
// Their frames have the names of the mapped modules.
func TestSharedModuleIDs(t *testing.T) {
	h := bundlebuild.NewHost()
	for _, tc := range []struct {
		name    string
		modules []string
		ids     []byte // in the records, 0 for none
		listed  []byte // in the BUILD_ID feature
		want    string
		warned  string
		bundle  bool
	}{
		{name: "an ID each", modules: []string{"[a]", "[b]"}, ids: []byte{1, 2}, want: "[a] 01, [b] 02"},
		{name: "one ID for all", modules: []string{"[a]", "[b]", "[c]"}, ids: []byte{1, 1, 1},
			listed: []byte{1, 1, 1}, want: "[a] ambiguous, [b] ambiguous, [c] ambiguous",
			warned: "3 kernel modules"},
		{name: "one ID for all in the feature", modules: []string{"[a]", "[b]"}, ids: []byte{0, 0},
			listed: []byte{1, 1}, want: "[a] ambiguous, [b] ambiguous", warned: "2 kernel modules"},
		{name: "the feature has an ID each", modules: []string{"[a]", "[b]"}, ids: []byte{1, 1},
			listed: []byte{3, 2}, want: "[a] 03, [b] 02"},
		{name: "the kernel's ID", modules: []string{"[a]", "[b]"}, ids: []byte{9, 2},
			want: "[a] ambiguous, [b] 02", warned: "1 kernel module"},
		{name: "one module by two names", modules: []string{"[nf_nat]", "/lib/nf-nat.ko.xz"},
			ids: []byte{1, 1}, want: "[nf_nat] 01"},
		{name: "with a bundle of the boot", modules: []string{"[a]", "[worker_mod]"}, ids: []byte{1, 1},
			bundle: true, want: "[a] ambiguous, [worker_mod] 6d", warned: "2 kernel modules"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCapture()
			kernel := sum(9)
			if tc.bundle {
				kernel = h.Kernel[:]
				c.FeatureString(perfbuild.FeatureOSRelease, h.Release)
			}
			c.KernelMap2("_text", h.Text, h.Text, 0x1000000, kernel)
			entries := []perfbuild.BuildIDEntry{{Misc: perfbuild.Kernel, ID: kernel,
				Filename: "[kernel.kallsyms]"}}
			for i, name := range tc.modules {
				m := perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: sharedModule(i), Len: 0x1000,
					Filename: name}
				if tc.ids[i] != 0 {
					m.BuildID = sum(tc.ids[i])
				}
				c.Mmap2(m, perfbuild.At{})
				c.hit(7, bundlebuild.SampleA, cK, sharedModule(i)+0x10)
				if tc.listed != nil {
					entries = append(entries, perfbuild.BuildIDEntry{Misc: perfbuild.Kernel,
						ID: sum(tc.listed[i]), Filename: name})
				}
			}
			c.BuildIDs(entries...)
			var from []*Capture
			if tc.bundle {
				from = append(from, openBuilt(t, h.Bundle()))
			}
			_, p := withBundles(t, c.Bytes(), from...)
			if got := idsOf(p, ingest.Module); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			warned := ""
			for _, w := range p.Stats.Warnings {
				warned += w.Text
			}
			if !strings.Contains(warned, tc.warned) || tc.warned == "" && warned != "" {
				t.Errorf("warnings %q, want %q", warned, tc.warned)
			}
		})
	}
}

// idsOf lists the objects of a kind: the path, with the ID's first digits or the reason.
func idsOf(p *ingest.Profile, kind ingest.ObjectKind) string {
	var list []string
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.Kind != kind {
			continue
		}
		id := o.Reason.String()
		if !o.ID.IsZero() && o.Reason == ingest.ReasonNone {
			id = o.ID.Hex()[:2]
		}
		list = append(list, fmt.Sprint(o.File.Path, " ", id))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// TestSharedFileIDs: copies of a file have one build ID and keep their own names; the ID of files
// that were linked with one on purpose, and have other code, identifies neither.
func TestSharedFileIDs(t *testing.T) {
	type file struct {
		path   string
		pgoff  uint64
		length uint64
		t      uint64 // 0: it was mapped before the recording
		listed bool   // the ID is in the BUILD_ID feature, not in the record
	}
	for _, tc := range []struct {
		name  string
		files []file
		want  string
	}{
		{name: "copies", files: []file{{path: "/t1", length: 0x2000}, {path: "/t2", length: 0x2000}},
			want: "/t1 05, /t2 05"},
		{name: "one name in two directories", files: []file{{path: "/b/t", length: 0x2000},
			{path: "/a/t", length: 0x2000}}, want: "/a/t 05"},
		{name: "a copy that was mapped before", files: []file{{path: "/t1", length: 0x2000},
			{path: "/t2", length: 0x9000, t: 3}}, want: "/t1 05, /t2 05"},
		{name: "other length", files: []file{{path: "/t1", length: 0x2000, t: 2},
			{path: "/t2", length: 0x9000, t: 3}}, want: "/t1 ambiguous, /t2 ambiguous"},
		{name: "other offset", files: []file{{path: "/t1", length: 0x2000},
			{path: "/t2", pgoff: 0x1000, length: 0x2000, t: 3}}, want: "/t1 ambiguous, /t2 ambiguous"},
		{name: "other offset, listed", files: []file{{path: "/t1", length: 0x2000, listed: true},
			{path: "/t2", pgoff: 0x1000, length: 0x2000, listed: true}},
			want: "/t1 ambiguous, /t2 ambiguous"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCapture()
			var entries []perfbuild.BuildIDEntry
			for i, f := range tc.files {
				m := perfbuild.Mmap{PID: 7, Addr: 0x100000 * uint64(i+1), Len: f.length, PgOff: f.pgoff,
					Filename: f.path, BuildID: sum(5)}
				if f.listed {
					m.BuildID, m.Ino = nil, uint64(i+1)
					entries = append(entries, perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(5),
						Filename: f.path})
				}
				c.Mmap2(m, perfbuild.At{Time: f.t, ID: 11})
				c.hit(7, 9, cU, m.Addr+0x10)
			}
			c.BuildIDs(entries...)
			p := fold(t, c.Bytes(), Options{})
			if got := idsOf(p, ingest.ELF); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			warned := slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
				return strings.Contains(w.Text, "2 files with samples, among them /t1")
			})
			if want := strings.Contains(tc.want, "ambiguous"); warned != want {
				t.Errorf("warnings %v", p.Stats.Warnings)
			}
		})
	}
}

// TestListedModules: a copy of /proc/kallsyms of the same boot names the functions of modules that
// have no build ID of their own; an interrupt at a function's first byte is in it.
func TestListedModules(t *testing.T) {
	const text = uint64(0xffffffff81000000)
	list := func(kernel uint64) string {
		path := filepath.Join(t.TempDir(), "kallsyms")
		lines := fmt.Sprintf("%x T _text\n", kernel)
		for _, s := range []struct {
			at   uint64
			line string
		}{
			{sharedModule(0), "t __pfx_first\t[a]"}, {sharedModule(0) + 0x10, "t first\t[a]"},
			{sharedModule(0) + 0x20, "t __pfx_second\t[a]"}, {sharedModule(0) + 0x30, "T second\t[a]"},
			{sharedModule(1), "t other\t[b]"}, {sharedModule(0) + 0x40, "t of_b\t[b]"},
			{sharedModule(2) + 8, "t known\t[c]"},
		} {
			lines += fmt.Sprintf("%x %s\n", s.at, s.line)
		}
		must.Write(t, path, []byte(lines))
		return path
	}
	c := newCapture()
	c.KernelMap2("_text", text, text, 0x800000, sum(9))
	for i, id := range []byte{1, 1, 2} {
		c.Mmap2(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: sharedModule(i), Len: 0x1000,
			Filename: "[" + string(rune('a'+i)) + "]", BuildID: sum(id)}, perfbuild.At{})
	}
	c.hit(7, 5, cK, sharedModule(0)+0x14, sharedModule(0)+0x30, sharedModule(0)+0x38,
		sharedModule(0)+0x20)
	c.hit(7, 6, cK, sharedModule(1)+0x14, sharedModule(2)+0x14)
	for _, tc := range []struct {
		name   string
		kernel uint64
		want   string
	}{
		{name: "same boot", kernel: text, want: "[a]:first+0x4 [a]:second+0x0 [a]:second+0x7 [a]:first+0xf, " +
			"[b]:other+0x14 [c]:+0x13"},
		{name: "another boot", kernel: text + 0x1000, want: "[a]:+0x14 [a]:+0x2f [a]:+0x37 [a]:+0x1f, " +
			"[b]:+0x14 [c]:+0x13"},
	} {
		p := fold(t, c.Bytes(), Options{Kallsyms: []string{list(tc.kernel)}})
		var stacks []string
		for i := range p.Samples {
			var frames []string
			for _, l := range p.Stack(nil, p.Samples[i].Stack) {
				o := &p.Objects[p.Locations[l].Object]
				frames = append(frames, fmt.Sprintf("%s:%s+%#x", o.File.Path, o.Symbol, p.Locations[l].Offset))
			}
			stacks = append(stacks, strings.Join(frames, " "))
		}
		slices.Sort(stacks)
		if got := strings.Join(stacks, ", "); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.name, got, tc.want)
		}
	}
}
