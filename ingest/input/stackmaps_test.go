package input

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/sideband"
)

// stackFiles unpacks a directory of fixtures/stacks, and beside it the kernel's list and
// notes.
func stackFiles(t testing.TB, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	unpack := func(from string) {
		to := filepath.Join(dir, strings.TrimSuffix(filepath.Base(from), ".gz"))
		must.Write(t, to, gunzip(t, from))
	}
	files, err := filepath.Glob("../../fixtures/stacks/" + name + "/*.gz")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range append(files, "../../fixtures/stacks/kallsyms.gz") {
		unpack(f)
	}
	notes := must.Read(t, "../../fixtures/kernel/notes")
	must.Write(t, filepath.Join(dir, "notes"), notes)
	return dir
}

func fieldsOf(t testing.TB, text string) []stackmap.Field {
	t.Helper()
	fields, err := stackmap.ParseFields(text)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// stackOptions are the options of the recorded dumps in a directory.
func stackOptions(t testing.TB, dir, counts string) Options {
	t.Helper()
	o := StackOptions{Counts: filepath.Join(dir, counts), Kallsyms: filepath.Join(dir, "kallsyms"),
		Key:  fieldsOf(t, "user_stack_id:0,kernel_stack_id:4,tgid:8,pid:12,comm:16"),
		Maps: make(map[int32]string)}
	files, err := filepath.Glob(filepath.Join(dir, "*.maps"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var pid int32
		if _, err := fmt.Sscanf(filepath.Base(f), "%d.maps", &pid); err != nil {
			t.Fatal(err)
		}
		o.Maps[pid] = f
	}
	return Options{Stacks: o}
}

// foldPath gives the profile of a capture that must be readable.
func foldPath(t testing.TB, path string, opts Options) (*Capture, *ingest.Profile) {
	t.Helper()
	c, err := Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkProfile(t, p)
	return c, p
}

// locations is a profile in words: dump with build IDs in place of paths.
func locations(p *ingest.Profile) string {
	for i := range p.Objects {
		if o := &p.Objects[i]; !o.ID.IsZero() {
			o.File.Path = o.ID.Hex()
		}
	}
	lines := dump(p)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestStackDumps: the recorded maps, in all forms of dumps, give one profile.
func TestStackDumps(t *testing.T) {
	dir := stackFiles(t, "load")
	open := func(stacks, counts string) (*ingest.Profile, string) {
		opts := stackOptions(t, dir, counts)
		opts.Keep = ingest.Keep{PID: true, TID: true}
		c, p := foldPath(t, filepath.Join(dir, stacks), opts)
		if !strings.HasSuffix(c.Kind(), "dump") || c.Stacks() == nil {
			t.Errorf("%s: kind %q", stacks, c.Kind())
		}
		if kernel := objectOf(t, p, ingest.KernelMapName); kernel.ID.Hex() != kernelHex(t) ||
			kernel.Kind != ingest.Kernel {
			t.Errorf("kernel %+v", kernel)
		}
		return p, locations(p)
	}
	p, want := open("stacks.raw", "bare.raw")
	if p.Stats.Samples < 100 || p.Stats.Weight != p.Stats.Samples {
		t.Errorf("%+v", p.Stats)
	}
	for _, c := range [][2]string{{"stacks.json", "counts.json"}, {"stacks.pretty", "bare.pretty"},
		{"stacks.txt", "cpus.txt"}, {"stacks.json", "cpus.raw"}, {"stacks.raw", "cpus.pretty"}} {
		if _, got := open(c[0], c[1]); got != want {
			t.Errorf("%s with %s:\n%s\nwant\n%s", c[0], c[1], got, want)
		}
	}
}

// kernelHex is the build ID in the notes of the recording's kernel.
func kernelHex(t *testing.T) string {
	t.Helper()
	notes := must.Read(t, "../../fixtures/kernel/notes")
	id, ok := buildid.KernelNotes(notes)
	if !ok {
		t.Fatal("no build ID in the notes")
	}
	return id.Hex()
}

// TestStackAddresses: addresses of user code are of the files in the saved maps.
func TestStackAddresses(t *testing.T) {
	dir := stackFiles(t, "addresses")
	opts := stackOptions(t, dir, "bare.raw")
	opts.Identify = func(q sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
		if q.File.Path == "/srv/app/bin/fixed" {
			return buildid.Make(buildid.GNU, []byte("fixed-by-its-path")), ingest.IDTrusted
		}
		return buildid.ID{}, ingest.IDNone
	}
	_, p := foldPath(t, filepath.Join(dir, "stacks.raw"), opts)
	weight := make(map[string]uint64)
	for _, s := range p.Samples {
		if leaf := p.Stack(nil, s.Stack); len(leaf) > 0 {
			o := &p.Objects[p.Locations[leaf[0]].Object]
			weight[o.File.Path+" "+o.Reason.String()] += s.Weight
		}
	}
	for _, want := range []string{"/srv/app/bin/mixed no build ID", "/srv/app/bin/fixed none",
		"/srv/app/bin/deleted no build ID", "[kernel.kallsyms] none"} {
		if weight[want] == 0 {
			t.Errorf("nothing in %q of %v", want, weight)
		}
	}
	if o := objectOf(t, p, "/srv/app/bin/deleted"); !o.File.Deleted {
		t.Errorf("the deleted file: %+v", o)
	}
	if !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
		return strings.Contains(w.Text, "have no build ID") && strings.Contains(w.Hint, "--explain")
	}) {
		t.Errorf("warnings %v", p.Stats.Warnings)
	}
}

// stackRecord is a frame of a stack map.
func stackRecord(status byte, id string, value uint64) []byte {
	b := make([]byte, 32)
	b[0] = status
	copy(b[4:24], id)
	for i := range 8 {
		b[24+i] = byte(value >> (8 * i))
	}
	return b
}

// stackDump makes the raw dump of a map with these stacks, under the ids from 0 on.
func stackDump(t *testing.T, stacks ...[][]byte) []byte {
	t.Helper()
	const depth = 6
	var pairs [][2][]byte
	for i, frames := range stacks {
		value := slices.Concat(frames...)
		value = append(value, make([]byte, 32*depth-len(value))...)
		pairs = append(pairs, [2][]byte{{byte(i), 0, 0, 0}, value})
	}
	b, err := rawdump.Append(nil, rawdump.Header{Type: 7, Flags: 1 << 5, KeySize: 4,
		ValueSize: 32 * depth, Depth: depth, Name: "stacks"}, pairs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// countDump makes the raw dump of counts by user id, kernel id, pid and comm of 4 bytes.
func countDump(t *testing.T, rows ...[5]any) []byte {
	t.Helper()
	var pairs [][2][]byte
	word := func(v int) []byte {
		return []byte{byte(v), byte(v >> 8), byte(v >> 16),
			byte(v >> 24)}
	}
	for _, r := range rows {
		key := slices.Concat(word(r[0].(int)), word(r[1].(int)), word(r[2].(int)),
			[]byte(r[3].(string)))
		pairs = append(pairs, [2][]byte{key, append(word(r[4].(int)), 0, 0, 0, 0)})
	}
	b, err := rawdump.Append(nil, rawdump.Header{Type: 1, KeySize: 16, ValueSize: 8,
		Name: "counts"}, pairs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestStackFrames: the locations of frames, by their status, ids and options.
func TestStackFrames(t *testing.T) {
	const (
		valid, ip = 1, 2
		text      = 0xffffffff81000000
		id        = "abcdefghijklmnopqrst"
	)
	hex := fmt.Sprintf("%x", id)
	list := "ffffffff81000000 T _text\nffffffff81000100 T do_it\nffffffff82000000 T _end\n" +
		"ffffffffc0000000 t mod_work\t[mymod]\nffffffffc0000100 t mod_next\t[mymod]\n" +
		"ffffffffc0100000 t bpf_prog_0011223344556677_x\t[bpf]\n"
	mapped := "555500000000-555500010000 r-xp 00001000 fd:00 7 /srv/app/worker\n" +
		"7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]\n" +
		"7f0000000000-7f0000010000 rwxp 00000000 00:00 0 \n"
	for _, c := range []struct {
		name   string
		stacks [][][]byte
		counts [][5]any
		opts   func(o *Options)
		want   []string
		reason map[string]ingest.Reason
	}{
		{name: "the first frame is exact, others are calls", stacks: [][][]byte{{
			stackRecord(valid, id, 0x100), stackRecord(valid, id, 0x200),
			stackRecord(valid, "x", 0)}},
			counts: [][5]any{{0, -14, 7, "work", 5}},
			want:   []string{"work: " + hex + "+0x100 " + hex + "+0x1ff 78+0x0 5 5"}},
		{name: "EMPTY ends a stack",
			stacks: [][][]byte{{stackRecord(valid, id, 0x100), stackRecord(0, "", 0),
				stackRecord(valid, id, 0x200)}}, counts: [][5]any{{0, -14, 7, "work", 5}},
			want: []string{"work: " + hex + "+0x100 5 5"}},
		{name: "the kernel's part comes before the user's",
			stacks: [][][]byte{{stackRecord(valid, id, 0x100)}, {
				stackRecord(ip, "", text+0x110), stackRecord(ip, "", text+0x120)}},
			counts: [][5]any{{0, 1, 7, "work", 5}, {-14, 1, 0, "idle", 2}},
			want: []string{"idle: [kernel.kallsyms]+0x110 [kernel.kallsyms]+0x11f 2 2",
				"work: [kernel.kallsyms]+0x110 [kernel.kallsyms]+0x11f " + hex + "+0x100 5 5"}},
		{name: "modules and programs by the list",
			stacks: [][][]byte{{stackRecord(ip, "", 0xffffffffc0100020),
				stackRecord(ip, "", 0xffffffffc0000041), stackRecord(ip, "", 0xffffffffa0000001)}},
			counts: [][5]any{{-14, 0, 7, "work", 5}},
			want:   []string{"work: bpf_prog_0011223344556677_x+0x20 [mymod]+0x40 [unmapped kernel] 5 5"},
			reason: map[string]ingest.Reason{"[mymod]": ingest.ReasonNone,
				"bpf_prog_0011223344556677_x": ingest.ReasonNone}},
		{name: "no call is before the first instruction of a program, a module or the kernel",
			stacks: [][][]byte{{
				stackRecord(ip, "", text+0x110), stackRecord(ip, "", 0xffffffffc0100000),
				stackRecord(ip, "", 0xffffffffc0000000), stackRecord(ip, "", text),
				stackRecord(ip, "", 0xffffffffc0000100)}}, counts: [][5]any{{-14, 0, 7, "work", 5}},
			want: []string{"work: [kernel.kallsyms]+0x110 bpf_prog_0011223344556677_x+0x0 [mymod]+0x0 " +
				"[kernel.kallsyms]+0x0 [mymod]+0xff 5 5"}},
		{name: "user addresses by the maps of their process",
			stacks: [][][]byte{{stackRecord(ip, "", 0x555500000010),
				stackRecord(ip, "", 0x7f0000000011), stackRecord(ip, "", 0x7ffd00000701),
				stackRecord(ip, "", 0x111111110001)}},
			counts: [][5]any{{0, -14, 7, "work", 5}, {0, -14, 8, "else", 1}},
			want: []string{"else: [unmapped] [unmapped] [unmapped] [unmapped] 1 1",
				"work: /srv/app/worker+0x1010 //anon [vdso]+0x700 [unmapped] 5 5"},
			reason: map[string]ingest.Reason{"/srv/app/worker": ingest.NoBuildID,
				"//anon": ingest.AnonymousMemory}},
		{name: "maps for all", stacks: [][][]byte{{stackRecord(ip, "", 0x555500000010)}},
			counts: [][5]any{{0, -14, 7, "work", 5}, {0, -14, 8, "else", 1}},
			opts: func(o *Options) {
				o.Stacks.Maps[AnyProcess] = o.Stacks.Maps[7]
			}, want: []string{"else: /srv/app/worker+0x1010 1 1", "work: /srv/app/worker+0x1010 5 5"}},
		{name: "nothing is known of addresses",
			stacks: [][][]byte{{stackRecord(ip, "", 0x555500000010)}, {
				stackRecord(ip, "", text+0x110)}}, counts: [][5]any{{0, 1, 7, "work", 5}},
			opts: func(o *Options) {
				o.Stacks.Maps, o.Stacks.Kallsyms = nil, ""
			}, want: []string{"work: [unmapped kernel] [unmapped] 5 5"},
			reason: map[string]ingest.Reason{"[unmapped kernel]": ingest.MapsNotSaved,
				"[unmapped]": ingest.MapsNotSaved}},
		{name: "lost stacks", stacks: [][][]byte{{stackRecord(valid, id, 0x100)}},
			counts: [][5]any{{-17, -14, 7, "work", 5},
				{0, -12, 7, "work", 4}, {-14, -14, 7, "work", 3}, {3, -14, 7, "work", 2},
				{-22, -17, 7,
					"work", 1}},
			want: []string{"work: [lost kernel stack: bucket taken] [lost: error] 1 1",
				"work: [lost kernel stack: no memory] " + hex + "+0x100 4 4",
				"work: [lost: bucket taken] 5 5",
				"work: [lost: no stack taken] 3 3", "work: [lost: not in the dump] 2 2"},
			reason: map[string]ingest.Reason{"[lost: bucket taken]": ingest.StackLost}},
		{name: "rubbish at the end of a chain of frame pointers",
			stacks: [][][]byte{{stackRecord(valid, id, 0x100),
				stackRecord(ip, "", 0x12), stackRecord(ip, "", 0x3)}},
			counts: [][5]any{{0, -14, 7, "work", 5}},
			want:   []string{"work: " + hex + "+0x100 5 5"}},
		{name: "a file that the store knows by its ID serves addresses of its path",
			stacks: [][][]byte{{
				stackRecord(valid, id, 0x100), stackRecord(ip, "", 0x555500000010)}},
			counts: [][5]any{{0, -14, 7, "work", 5}}, opts: func(o *Options) {
				o.Stacks.PathOf = func(buildid.ID) string { return "/srv/app/worker" }
			}, want: []string{"work: " + hex + "+0x100 " + hex + "+0x100f 5 5"}},
		{name: "only a process", stacks: [][][]byte{{stackRecord(valid, id, 0x100)}},
			counts: [][5]any{{0, -14, 7, "work", 5}, {0, -14, 8, "work", 1}},
			opts:   func(o *Options) { o.PIDs = []int32{8} },
			want:   []string{"work: " + hex + "+0x100 1 1"}},
		{name: "only a name, processes apart", stacks: [][][]byte{{stackRecord(valid, id, 0x100)}},
			counts: [][5]any{{0, -14, 7, "work", 5}, {0, -14, 8, "work", 1}, {0, -14, 9, "else", 1}},
			opts:   func(o *Options) { o.Comms, o.Keep.PID = []string{"work"}, true },
			want:   []string{"7/-1@-1 work: " + hex + "+0x100 5 5", "8/-1@-1 work: " + hex + "+0x100 1 1"}},
	} {
		dir := t.TempDir()
		file := func(name string, b []byte) string {
			path := filepath.Join(dir, name)
			must.Write(t, path, b)
			return path
		}
		opts := Options{Stacks: StackOptions{Counts: file("counts", countDump(t, c.counts...)),
			Key: fieldsOf(t, "user_stack_id:0,kernel_stack_id:4,pid:8,comm:12:4"),
			Kallsyms: file("kallsyms",
				[]byte(list)), Maps: map[int32]string{7: file("maps", []byte(mapped))}}}
		if c.opts != nil {
			c.opts(&opts)
		}
		_, p := foldPath(t, file("stacks", stackDump(t, c.stacks...)), opts)
		reasons := make(map[string]ingest.Reason)
		for i := range p.Objects {
			reasons[p.Objects[i].File.Path] = p.Objects[i].Reason
			if o := &p.Objects[i]; o.Kind == ingest.ELF && !o.ID.IsZero() {
				o.File.Path = o.ID.Hex()
			}
		}
		if got := dump(p); !slices.Equal(slices.Sorted(slices.Values(got)), c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"),
				strings.Join(c.want, "\n"))
		}
		for path, want := range c.reason {
			if got, ok := reasons[path]; !ok || got != want {
				t.Errorf("%s: %s: reason %v, %v", c.name, path, got, reasons)
			}
		}
	}
}

// TestStackErrors: files that cannot be read, and filters without labels, are errors.
func TestStackErrors(t *testing.T) {
	dir := stackFiles(t, "load")
	for _, c := range []struct {
		name, file string
		opts       func(o *Options)
		want       string
	}{
		{name: "counts missing", file: "stacks.raw",
			opts: func(o *Options) { o.Stacks.Counts = "/nowhere" },
			want: "/nowhere"},
		{name: "key too long", file: "stacks.raw",
			opts: func(o *Options) { o.Stacks.Key[0].Offset = 40 },
			want: "the fields end"},
		{name: "key unknown", file: "stacks.raw", opts: func(o *Options) { o.Stacks.Key = nil },
			want: "not known"},
		{name: "value unknown", file: "stacks.raw",
			opts: func(o *Options) { o.Stacks.Counts = dir + "/stacks.json" },
			want: "fields end"},
		{name: "counts for stacks", file: "bare.json", want: "no stacks in it"},
		{name: "counts for stacks, of 4 bytes", file: "single.json",
			want: "is it the map that counts them"},
		{name: "a map of another type", file: "single.raw", want: `the map "single" is a hash`},
		{name: "keys of 32 bytes", file: "cpus.json", want: "no stacks in it"},
		{name: "no list", file: "stacks.raw",
			opts: func(o *Options) { o.Stacks.Kallsyms = dir + "/notes" }, want: "notes"},
		{name: "no maps", file: "stacks.raw",
			opts: func(o *Options) { o.Stacks.Maps[1] = dir + "/kallsyms" },
			want: "/proc/PID/maps"},
		{name: "no such event", file: "stacks.raw", opts: func(o *Options) { o.Event = "cycles" },
			want: `no event "cycles"`},
		{name: "no processes", file: "stacks.raw", opts: func(o *Options) {
			o.Stacks.Counts, o.Stacks.Key, o.PIDs = "", nil, []int32{1}
		}, want: "no process IDs"},
		{name: "no names", file: "stacks.json", opts: func(o *Options) {
			o.Stacks.Counts, o.Stacks.Key, o.Comms = "", nil, []string{"x"}
		}, want: "no thread names"},
	} {
		opts := stackOptions(t, dir, "bare.raw")
		if c.opts != nil {
			c.opts(&opts)
		}
		cp, err := Open(t.Context(), filepath.Join(dir, c.file), opts)
		if err == nil {
			_, err = cp.Profile(t.Context())
			cp.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	must.Write(t, filepath.Join(dir, "rubbish"), []byte("neither\n"))
	if _, err := Open(t.Context(), filepath.Join(dir, "rubbish"), Options{}); !errors.Is(err,
		ErrNotCapture) {
		t.Errorf("rubbish: %v", err)
	}
}

// TestStackDamage: the whole part of a damaged dump is used, with a warning.
func TestStackDamage(t *testing.T) {
	dir := stackFiles(t, "load")
	for _, name := range []string{"stacks.raw", "stacks.json", "stacks.txt", "bare.raw",
		"bare.txt"} {
		path := filepath.Join(dir, name)
		b := must.Read(t, path)
		must.Write(t, path, b[:len(b)*2/3])
		stacks := name
		opts := stackOptions(t, dir, "counts.raw")
		if strings.HasPrefix(name, "bare") {
			stacks, opts = "stacks.pretty", stackOptions(t, dir, name)
		}
		_, p := foldPath(t, filepath.Join(dir, stacks), opts)
		if p.Stats.Samples < 50 ||
			!slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
				return w.Partial && strings.Contains(w.Text, name)
			}) {
			t.Errorf("%s: %d samples, %v", name, p.Stats.Samples, p.Stats.Warnings)
		}
		must.Write(t, path, b)
	}
}

// FuzzStacks: of any bytes that are stacks in some form, the profile keeps its promises.
func FuzzStacks(f *testing.F) {
	mapped := []byte("400000-500000 r-xp 00001000 fd:00 7 /srv/app/worker\n")
	for _, text := range []string{
		"@[\n93ac61ec5a8eb1396f9fbd350e3169a558528a40 0x1\nffffffff81000123\n7f12345678\n, x, 1]: 3\n",
		"@[\n93ac61ec5a8eb1396f9fbd350e3169a558528a40 0x0\n, \n    do_mmap+1\n, x]: 3\n",
		"key: 01 00 00 00  value: 01 00 00 00 " + strings.Repeat("ab ", 20) +
			strings.Repeat("11 ", 8) +
			"\nFound 1 element\n",
		`{"systing_profile_export":1}` + "\n" + `["f",0,"main (app) <0x401234>"]` + "\n" +
			`["s",0,[0]]` + "\n" + `["x",0,0,0,3]` + "\n",
		`{"comm":"a","pid":4,"user_stack":{"buildid":"[0]aa00 +1; [1]400010; "}}`,
	} {
		f.Add([]byte(text), mapped)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data, mapped []byte) {
		path := filepath.Join(dir, "maps")
		must.Write(t, path, mapped)
		in := &file{path: "fuzz", r: bytes.NewReader(data), size: int64(len(data))}
		opts := Options{Selection: Selection{Keep: ingest.Keep{PID: true}}, Stacks: StackOptions{
			Maps: map[int32]string{AnyProcess: path}}}
		form := stackmap.Sniff(&stackmap.Input{R: in.r, Size: in.size})
		if form == stackmap.NoForm {
			return
		}
		s, err := openStacks(t.Context(), in, form, &opts)
		if err != nil {
			return
		}
		p, err := s.fold(t.Context())
		if err != nil {
			return // the maps are none
		}
		checkProfile(t, p)
	})
}

// TestStackCounts: counts may be nanoseconds, far beyond 32 bits, and cost no more for it;
// profiles of them merge.
func TestStackCounts(t *testing.T) {
	const id = "93ac61ec5a8eb1396f9fbd350e3169a558528a40"
	path := filepath.Join(t.TempDir(), "stacks.txt")
	must.Write(t, path, []byte("@[\n"+id+" 0x1\n]: 4000000000000000000\n@[\n"+id+
		" 0x2\n]: 1\n@[\n"+id+" 0x1\n]: 4000000000000000000\n"))
	_, p := foldPath(t, path, Options{})
	merged, err := merge.Profiles([]*ingest.Profile{p, p})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range []*ingest.Profile{p, merged} {
		times := uint64(i + 1)
		if s := p.Samples; len(s) != 2 || s[0].Count != times*8e18 || s[0].Weight != times*8e18 ||
			s[1].Count != times {
			t.Errorf("profile %d: %+v", i, s)
		}
	}
	if p.Stats.Samples != 8e18+1 {
		t.Errorf("%d samples", p.Stats.Samples)
	}
}
