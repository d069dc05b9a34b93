package sideband

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

// identified lists the objects of a recording with their build IDs: "name ID source".
func identified(sb *State, x *Identifier) string {
	var list []string
	for _, o := range sb.Objects.List[NumFixed:] {
		x.Identify(&o)
		text := o.Reason.String()
		if !o.ID.IsZero() {
			text = o.ID.Hex() + " " + o.IDSource.String()
		}
		list = append(list, recordedName(&o.File)+" "+text)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// TestMmapForms: which object a record of each form makes, and with which build ID.
func TestMmapForms(t *testing.T) {
	long := "01" + strings.Repeat("01", 19)
	for _, tc := range []struct {
		name  string
		build func(f *perfbuild.File)
		want  string
	}{
		{name: "MMAP", build: func(f *perfbuild.File) { f.Mmap(exe(7, "/a", 1), at(1)) }, want: "/a no build ID"},
		{name: "MMAP and MMAP2 of one path", build: func(f *perfbuild.File) {
			f.Mmap(exe(7, "/a", 1), at(1))
			f.Mmap2(exe(8, "/a", 1), at(2))
		}, want: "/a no build ID, /a no build ID"},
		{name: "MMAP2 with a build ID", build: func(f *perfbuild.File) {
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x1000, Len: 0x1000, BuildID: sum(1), Filename: "/a"}, at(1))
		}, want: "/a " + long + " recorded"},
		{name: "a build ID of 16 bytes", build: func(f *perfbuild.File) {
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x1000, Len: 0x1000, BuildID: sum(1)[:16], Filename: "/a"}, at(1))
		}, want: "/a " + long[:32] + " recorded"},
		{name: "a file with a build ID in anonymous memory", build: func(f *perfbuild.File) {
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x1000, Len: 0x1000, BuildID: sum(1), Filename: "/memfd:runc (deleted)"}, at(1))
		}, want: "/memfd:runc (deleted) " + long + " recorded"},
		{name: "two generations of an inode", build: func(f *perfbuild.File) {
			m := exe(7, "/a", 1)
			f.Mmap2(m, at(1))
			m.InoGen = 2
			f.Mmap2(m, at(2))
		}, want: "/a no build ID, /a no build ID"},
		{name: "one file mapped twice", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/a", 1), at(1))
			f.Mmap2(exe(8, "/a", 1), at(2))
		}, want: "/a no build ID"},
		{name: "text in huge pages is anonymous", build: func(f *perfbuild.File) {
			m := exe(7, "/anon_hugepage", 0)
			m.Flags = 0x40000
			f.Mmap2(m, at(1))
		}, want: "/anon_hugepage " + ingest.AnonymousMemory.String()},
		{name: "the vdso has its own ID", build: func(f *perfbuild.File) {
			f.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.Kernel, ID: sum(1), Filename: "[vdso]"})
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x7fff00000000, Len: 0x1000, Filename: "[vdso]"}, at(1))
		}, want: "[vdso] " + long + " listed for the path"},
		{name: "an entry with the file's deleted name", build: func(f *perfbuild.File) {
			f.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(1), Filename: "/a"})
			f.Mmap2(exe(7, "/a (deleted)", 1), at(1))
		}, want: "/a (deleted) no build ID"},
		{name: "an ID before Linux 5.11, with zeros", build: func(f *perfbuild.File) {
			f.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(1), NoSize: true, Filename: "/a"})
			f.Mmap2(exe(7, "/a", 1), at(1))
		}, want: "/a " + long + " listed for the path"},
		{name: "the kernel by the name of its image", build: func(f *perfbuild.File) {
			f.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.Kernel, ID: sum(1), Filename: "/boot/Image"})
			f.KernelMap("_text", text, text, 0x1000)
		}, want: "[kernel.kallsyms] " + long + " listed for the path"},
		{name: "the kernel's ID in its mapping", build: func(f *perfbuild.File) {
			f.KernelMap2("_text", text, text, 0x1000, sum(1))
		}, want: "[kernel.kallsyms] " + long + " recorded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			tc.build(f)
			sb := scan(t, f, ScanOptions{})
			if got := identified(sb, NewIdentifier(sb, ObjectQuery{}, nil)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestSharedContent: build IDs of files with different code prove nothing; how the lengths of
// mappings count depends on who recorded them.
func TestSharedContent(t *testing.T) {
	m := func(pid int32, name string, pgoff, length uint64) perfbuild.Mmap {
		return perfbuild.Mmap{PID: pid, Addr: 0x1000, Len: length, PgOff: pgoff, BuildID: sum(1), Filename: name}
	}
	for _, tc := range []struct {
		name    string
		a, b    perfbuild.Mmap
		aAt     perfbuild.At
		refuted bool
	}{
		{name: "the same code", a: m(7, "/a", 0x1000, 0x1000), b: m(8, "/b", 0x1000, 0x1000), aAt: at(1)},
		{name: "other offsets", a: m(7, "/a", 0x1000, 0x1000), b: m(8, "/b", 0x2000, 0x1000), aAt: at(1), refuted: true},
		{name: "other lengths", a: m(7, "/a", 0x1000, 0x1000), b: m(8, "/b", 0x1000, 0x2000), aAt: at(1), refuted: true},
		{name: "other lengths, one listed at the start", a: m(7, "/a", 0x1000, 0x1000), b: m(8, "/b", 0x1000, 0x2000)},
	} {
		f := perfbuild.New()
		f.Mmap2(tc.a, tc.aAt)
		f.Mmap2(tc.b, at(2))
		sb := scan(t, f, ScanOptions{})
		x := NewIdentifier(sb, ObjectQuery{}, nil)
		if got := identified(sb, x); strings.Contains(got, "ambiguous") != tc.refuted {
			t.Errorf("%s: %s", tc.name, got)
		}
		w, ok := x.RefutedWarning()
		if ok != tc.refuted || ok && !strings.Contains(w.Text, "2 files with samples, among them /a, share") {
			t.Errorf("%s: warning %q", tc.name, w.Text)
		}
	}
}

// TestRefutedModules: the warning about modules that share an ID.
func TestRefutedModules(t *testing.T) {
	f := perfbuild.New()
	for i, name := range []string{"[a]", "[b]", "[c]"} {
		f.Mmap2(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: module + uint64(i)<<16, Len: 0x1000,
			BuildID: sum(1), Filename: name}, at(1))
	}
	sb := scan(t, f, ScanOptions{})
	x := NewIdentifier(sb, ObjectQuery{}, nil)
	identified(sb, x)
	w, ok := x.RefutedWarning()
	if want := "3 kernel modules share a recorded build ID with another module"; !ok || !strings.HasPrefix(w.Text, want) {
		t.Errorf("warning %q", w.Text)
	}
}

// TestDisownedWarning: the text for one path and for several, each once.
func TestDisownedWarning(t *testing.T) {
	for _, tc := range []struct {
		names []string
		want  string
	}{
		{names: []string{"/a"}, want: "/a was replaced during the recording"},
		{names: []string{"/b", "/a", "/b"}, want: "/a and 1 more paths were replaced during the recording"},
	} {
		if w := DisownedWarning(tc.names); !strings.HasPrefix(w.Text, tc.want) || w.Hint == "" {
			t.Errorf("warning %q, want %q", w.Text, tc.want)
		}
	}
}

// TestClaim: an ID that extends another replaces it, and two IDs of one key are none.
func TestClaim(t *testing.T) {
	long, short, other := buildid.New(sum(1)), buildid.New(sum(1)[:16]), buildid.New(sum(2))
	for _, tc := range []struct {
		name string
		ids  []buildid.ID
		want buildid.ID
	}{
		{name: "one", ids: []buildid.ID{long}, want: long},
		{name: "twice", ids: []buildid.ID{long, long}, want: long},
		{name: "two", ids: []buildid.ID{long, other}},
		{name: "two, and one again", ids: []buildid.ID{long, other, long}},
		{name: "another length", ids: []buildid.ID{short, other}},
	} {
		m := make(map[string]buildid.ID)
		for _, id := range tc.ids {
			claim(m, "key", id)
		}
		if m["key"].Compare(tc.want) != 0 {
			t.Errorf("%s: %s, want %s", tc.name, m["key"], tc.want)
		}
	}
}

// TestForeign: the build ID that is listed for a path is not used for a file of an ended process
// that saw other files than the recorder.
func TestForeign(t *testing.T) {
	const tmpfs = 0x28 // minor number of a device without a disk
	listed := "01" + strings.Repeat("01", 19) + " listed for the path"
	for _, tc := range []struct {
		name         string
		major, minor uint32 // of the file; the recorder's is on 8:1
		command      string
		alive        bool
		links        [2]uint64 // mount namespaces of the recorder and the process
		want         string
	}{
		{name: "a disk", major: 8, minor: 2, want: listed},
		{name: "no disk", minor: tmpfs, want: "no build ID"},
		{name: "no disk, still running", minor: tmpfs, alive: true, want: listed},
		{name: "no disk, in the recorder's namespace", minor: tmpfs, links: [2]uint64{1, 1}, want: listed},
		{name: "a disk, in another namespace", major: 8, minor: 1, links: [2]uint64{1, 2}, want: "no build ID"},
		{name: "another namespace, still running", major: 8, minor: 1, alive: true, links: [2]uint64{1, 2}, want: listed},
		{name: "the recorder is not recorded", minor: tmpfs, command: "/opt/perf", want: listed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			f.CmdLine(cmp.Or(tc.command, "/bin/perf"), "record", "-a")
			f.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(1), Filename: "/a"})
			for i, inode := range tc.links {
				if inode != 0 {
					f.Namespaces(int32(7+i), int32(7+i), [][2]uint64{{4, 1}, {4, 1}, {4, 1}, {4, 1}, {4, 1}, {4, inode}, {4, 1}},
						perfbuild.At{})
				}
			}
			perf, m := exe(7, "/bin/perf", 1), exe(8, "/a", 2)
			perf.Maj, perf.Min, m.Maj, m.Min = 8, 1, tc.major, tc.minor
			f.Mmap2(perf, perfbuild.At{})
			f.Mmap2(m, at(1))
			if !tc.alive {
				f.Exit(8, 7, 8, 7, at(2))
			}
			f.Exit(7, 1, 9, 7, at(3)) // a thread
			sb := scan(t, f, ScanOptions{})
			want := "/a " + tc.want + ", /bin/perf no build ID"
			if got := identified(sb, NewIdentifier(sb, ObjectQuery{}, nil)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			var foreign bool
			x := NewIdentifier(sb, ObjectQuery{}, func(q ObjectQuery) (buildid.ID, ingest.IDSource) {
				foreign = foreign || q.Foreign
				return q.ByPath, ingest.IDByPath // as with --trust-paths
			})
			if got := identified(sb, x); !strings.HasPrefix(got, "/a "+listed) || foreign == (tc.want == listed) {
				t.Errorf("trusted: %s, foreign %t", got, foreign)
			}
		})
	}
}
