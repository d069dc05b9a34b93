package input

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/sideband"
)

// TestBundleStacks: the stack maps in a bundle make it a capture with samples, which its
// own kernel, modules, programs and maps explain.
func TestBundleStacks(t *testing.T) {
	const (
		valid, ip = 1, 2
		id        = "abcdefghijklmnopqrst"
	)
	h := bundlebuild.NewHost()
	user := stackDump(t, [][]byte{stackRecord(valid, id, 0x100), stackRecord(ip, "",
		bundlebuild.UserText+0x11)}, [][]byte{stackRecord(valid, id, 0x500)})
	kernel := stackDump(t, [][]byte{stackRecord(ip, "", bundlebuild.SlotA+0x10),
		stackRecord(ip, "", h.Text+bundlebuild.DoWork+5),
		stackRecord(ip, "", bundlebuild.Module+9)})
	counts := countDump(t, [5]any{0, 0, bundlebuild.Process, "work", 5},
		[5]any{1, -14, 99, "else", 2})
	key := fieldsOf(t, "user_stack_id:0,kernel_stack_id:4,pid:8,comm:12:4")
	h.Entries = map[string][]byte{
		bundle.DumpName("stacks"): user, bundle.DumpName("kern_stacks"): kernel,
		bundle.DumpName("counts"): counts, bundle.DumpName("other"): counts,
	}
	path := filepath.Join(t.TempDir(), "capture.data")
	must.Write(t, path, h.Bundle())
	c, p := foldPath(t, path, Options{Stacks: StackOptions{Key: key}})
	if c.Kind() != kindBundle || !c.HasSamples() || p.Meta.Host != h.Name {
		t.Errorf("kind %q, samples %v, host %q", c.Kind(), c.HasSamples(), p.Meta.Host)
	}
	var kinds []string
	for _, s := range p.Samples {
		line := p.Strings[s.Comm] + ":"
		for _, l := range p.Stack(nil, s.Stack) {
			o := &p.Objects[p.Locations[l].Object]
			line += " " + o.Kind.String()
		}
		kinds = append(kinds, line)
	}
	slices.Sort(kinds)
	// Two programs were at this address, and the time of the stack is not known.
	want := []string{"else: elf", "work: unmapped kernel module elf elf"}
	if !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q: %q", kinds, want, dump(p))
	}
	if o := objectOf(t, p, ingest.AmbiguousKernelPath); o.Reason != ingest.AddressReused {
		t.Errorf("%+v", o)
	}
	if o := objectOf(t, p, bundlebuild.Program); o.Kind != ingest.ELF {
		t.Errorf("%+v", o)
	}
	if programs, err := c.Programs(); err != nil || len(programs) == 0 {
		t.Errorf("programs %v, %v", programs, err)
	}
	if err := c.Replay(t.Context(), nil); err == nil {
		t.Error("stacks were replayed one by one")
	}
	_, filtered := foldPath(t, path, Options{Stacks: StackOptions{Key: key}, Selection: Selection{Comms: []string{"nobody"}}})
	if filtered.Stats.Samples > 0 || filtered.Stats.FilteredOut == 0 {
		t.Errorf("%d samples of nobody", filtered.Stats.Samples)
	}
	for _, w := range slices.Concat(p.Stats.Warnings, filtered.Stats.Warnings) {
		if strings.HasSuffix(w.Text, NoSamples) || w.Partial {
			t.Errorf("warning %+v", w)
		}
	}

	// With a key of unknown layout the bundle still serves other captures.
	c, p = foldPath(t, path, Options{})
	if c.HasSamples() || len(p.Samples) != 0 || !slices.ContainsFunc(p.Stats.Warnings,
		func(w ingest.Warning) bool {
			return !w.Partial && strings.Contains(w.Text, "the fields of its key are not known")
		}) {
		t.Errorf("%d samples, %+v", len(p.Samples), p.Stats.Warnings)
	}

	// Stacks without counts, and without a side band, are samples all the same.
	h.Entries = map[string][]byte{bundle.DumpName("stacks"): user, bundle.PerfDataName: nil}
	must.Write(t, path, h.Bundle())
	_, p = foldPath(t, path, Options{})
	if p.Stats.Samples != 2 || !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
		return w.Partial && strings.Contains(w.Text, bundle.PerfDataName)
	}) {
		t.Errorf("%d samples, %+v", p.Stats.Samples, p.Stats.Warnings)
	}

	// One that is cut off is a warning.
	h.Entries = map[string][]byte{bundle.DumpName("stacks"): user[:30]}
	must.Write(t, path, h.Bundle())
	_, p = foldPath(t, path, Options{})
	if !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
		return w.Partial && strings.Contains(w.Text, bundle.DumpName("stacks"))
	}) {
		t.Errorf("%+v", p.Stats.Warnings)
	}
}

// TestBundleSamples: the samples of the manifest, of two events: one of a period, and
// one of which each count has a weight.
func TestBundleSamples(t *testing.T) {
	const valid = 1
	h := bundlebuild.NewHost()
	user := stackDump(t, [][]byte{stackRecord(valid, "abcdefghijklmnopqrst", 0x100)})
	address := make([]byte, 16)
	for i := range 8 {
		address[i] = byte((h.Text + bundlebuild.DoWork) >> (8 * i))
	}
	rawDump := func(header rawdump.Header, pairs ...[2][]byte) []byte {
		b, err := rawdump.Append(nil, header, pairs)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	word := func(v ...int32) (b []byte) {
		for _, x := range v {
			b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
		}
		return b
	}
	const key, value = "user_stack_id:0:4,kernel_stack_id:4:4,tgid:8:4,comm:12:4", "0:8"
	counts := rawDump(rawdump.Header{Type: 1, KeySize: 16, ValueSize: 16, Name: "counts",
		Lost: map[string]uint64{"ring full": 4}},
		[2][]byte{append(word(0, 0, 7), "work"...), word(3, 0, 500, 0)},
		[2][]byte{append(word(0, -14, 8, 0)[:12], "else"...), word(2, 0, 0, 0)})
	h.Entries = map[string][]byte{
		bundle.DumpName("stacks"): user, bundle.DumpName("counts"): counts,
		bundle.DumpName("kernel_stacks"): rawDump(rawdump.Header{Type: 7, KeySize: 4,
			ValueSize: 16,
			Depth:     2, Name: "kernel_stacks"}, [2][]byte{word(0), address}),
	}
	event := func(name, unit string, period uint64, weight string) map[string]any {
		return map[string]any{"event": name, "unit": unit, "period": period, "weight": weight,
			"stacks": bundle.DumpName("stacks"), "kernel_stacks": bundle.DumpName("kernel_stacks"),
			"counts": bundle.DumpName("counts"), "key": key, "value": value}
	}
	path := filepath.Join(t.TempDir(), "capture.data")
	load := func(events ...map[string]any) *ingest.Profile {
		h.Manifest = map[string]any{"samples": events}
		must.Write(t, path, h.Bundle())
		_, p := foldPath(t, path, Options{Selection: Selection{Keep: ingest.Keep{PID: true}}})
		return p
	}
	p := load(event("cpu-clock", "nanoseconds", 100, ""), event("off-cpu", "nanoseconds", 0, "8:8"))
	for i := range p.Objects {
		if o := &p.Objects[i]; o.Kind == ingest.ELF {
			o.File.Path = "app"
		}
	}
	want := []string{
		"7/-1@-1 cpu-clock work: [kernel.kallsyms]+0x140 app+0x100 3 300",
		"7/-1@-1 off-cpu work: [kernel.kallsyms]+0x140 app+0x100 3 500",
		"8/-1@-1 cpu-clock else: app+0x100 2 200",
		"8/-1@-1 off-cpu else: app+0x100 2 0",
	}
	got := slices.Sorted(slices.Values(dump(p)))
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p.Stats.Lost != 8 || !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
		return strings.Contains(w.Text, "4 ring full")
	}) {
		t.Errorf("lost %d, %v", p.Stats.Lost, p.Stats.Warnings)
	}
	for name, change := range map[string]func(m map[string]any){
		"neither a period": func(m map[string]any) { m["period"] = 0 },
		"FIELD:OFFSET":     func(m map[string]any) { m["key"] = "nothing" },
		"OFFSET[:SIZE]":    func(m map[string]any) { m["value"] = "x" },
		"dumps/none":       func(m map[string]any) { m["counts"] = "dumps/none" },
		"dumps/gone":       func(m map[string]any) { m["stacks"] = "dumps/gone" },
		"dumps/nowhere":    func(m map[string]any) { m["kernel_stacks"] = "dumps/nowhere" },
	} {
		m := event("cpu-clock", "nanoseconds", 100, "")
		change(m)
		p := load(m)
		if len(p.Samples) != 0 ||
			!slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
				return w.Partial && strings.Contains(w.Text, name)
			}) {
			t.Errorf("%s: %d samples, %v", name, len(p.Samples), p.Stats.Warnings)
		}
	}
}

// TestBundlePlaces: addresses that the recorder explained, and paths of files that it knew.
func TestBundlePlaces(t *testing.T) {
	const (
		valid, ip = 1, 2
		id        = "abcdefghijklmnopqr\x00\x00" // its end looks like padding
	)
	h := bundlebuild.NewHost()
	h.Entries = map[string][]byte{
		bundle.DumpName("stacks"): stackDump(t, [][]byte{stackRecord(valid, id, 0x100),
			stackRecord(ip, "", bundle.OutsideAddress), stackRecord(ip, "", bundle.GoneAddress),
			stackRecord(ip, "", bundle.UnreadAddress), stackRecord(valid, id, 0x200), stackRecord(ip, "", bundle.OutsideAddress)}),
		bundle.DumpName("counts"): countDump(t, [5]any{0, -14, 99, "work", 5}),
	}
	h.Manifest = map[string]any{"samples": []map[string]any{{"event": "cpu-clock", "unit": "count",
		"period": 1, "stacks": bundle.DumpName("stacks"), "counts": bundle.DumpName("counts"),
		"key": "user_stack_id:0:4,kernel_stack_id:4:4,tgid:8:4,comm:12:4", "value": "0:8",
		"files": []map[string]any{{"build_id": "zz", "path": "/no/id"},
			{"build_id": "6162636465666768696a6b6c6d6e6f7071720000", "path": "/bin/work"}}}}}
	path := filepath.Join(t.TempDir(), "capture.data")
	must.Write(t, path, h.Bundle())
	pathOf := func(buildid.ID) string { return "/build/work" } // not where it ran
	_, p := foldPath(t, path, Options{Stacks: StackOptions{PathOf: pathOf}})
	var got []string
	for _, s := range p.Samples {
		for _, l := range p.Stack(nil, s.Stack) {
			o := &p.Objects[p.Locations[l].Object]
			got = append(got, o.File.Path+": "+o.Reason.String())
		}
	}
	want := []string{"/bin/work: none", "[unmapped]: unmapped",
		"[unmapped]: process gone", "[unmapped]: mappings not read", "/bin/work: none"}
	if !slices.Equal(got, want) || p.Stats.CutChains != 1 {
		t.Errorf("%q, want %q; %d chains are cut", got, want, p.Stats.CutChains)
	}
}

// TestBundleSeries: of maps that were dumped at intervals the last dumps are the samples. The records
// of mappings name the files of their build IDs, and locate the addresses of processes that ended
// before their mappings were copied, and of their children.
func TestBundleSeries(t *testing.T) {
	const (
		valid, ip    = 1, 2
		id, other    = "abcdefghijklmnopqrst", "bbcdefghijklmnopqrst"
		shell, child = 300, 301
		at           = 0x7f0000001000
	)
	h := bundlebuild.NewHost()
	stacks := [][][]byte{{stackRecord(valid, id, 0x100), stackRecord(ip, "", at+0x11)},
		{stackRecord(valid, other, 0x500)}}
	h.Entries = map[string][]byte{
		bundle.SeriesName("counts", 6, 1): countDump(t),
		bundle.SeriesName("counts", 6, 2): countDump(t, [5]any{0, -14, shell, "work", 5},
			[5]any{0, -14, child, "work", 7}, [5]any{1, -14, 99, "else", 2}),
		bundle.SeriesName("counts", 9, 1):  countDump(t, [5]any{1, -14, 98, "next", 2}),
		bundle.SeriesName("stacks", 5, 1):  stackDump(t),
		bundle.SeriesName("stacks", 5, 10): stackDump(t, stacks...),
		bundle.SeriesName("stacks", 5, 9):  stackDump(t, stacks[0]),
		bundle.SeriesName("stacks", 8, 1):  stackDump(t, stacks[1]),
	}
	h.Also = func(f *perfbuild.File) {
		when := func(pid int32, n uint64) perfbuild.At {
			return perfbuild.At{PID: pid, TID: pid, Time: bundlebuild.LoadA + n}
		}
		f.Mmap2(perfbuild.Mmap{PID: shell, Addr: at, Len: 0x1000, Filename: "/bin/sh"}, when(shell, 1))
		f.Comm(shell, shell, "work", true, when(shell, 2))
		f.Mmap2(perfbuild.Mmap{PID: shell, Addr: at, Len: 0x1000, PgOff: 0x2000, BuildID: []byte(id),
			Filename: "/bin/work"}, when(shell, 3))
		f.Fork(child, shell, child, shell, when(shell, 4))
	}
	path := filepath.Join(t.TempDir(), "capture.data")
	must.Write(t, path, h.Bundle())
	pathOf := func(buildid.ID) string { return "/build/file" } // not where it ran
	c, p := foldPath(t, path, Options{Stacks: StackOptions{PathOf: pathOf,
		Key: fieldsOf(t, "user_stack_id:0,kernel_stack_id:4,pid:8,comm:12:4")}})
	want := []string{"else: /build/file+0x500 2 2", "work: /bin/work+0x100 /bin/work+0x2010 12 12"}
	if got := slices.Sorted(slices.Values(dump(p))); !slices.Equal(got, want) || !c.HasSamples() {
		t.Errorf("%q, want %q", got, want)
	}
	if !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
		return !w.Partial && strings.HasSuffix(w.Text, "are used, and not of stacks (id 0)")
	}) {
		t.Errorf("warnings %+v", p.Stats.Warnings)
	}
	for i := range p.Objects {
		if o := &p.Objects[i]; o.Kind == ingest.ELF && o.Reason != ingest.ReasonNone {
			t.Errorf("%s: %s", o.File.Path, o.Reason)
		}
	}
}

// TestBundleCompiled: code that a process compiled at run time is asked for with the lists that the
// bundle has of it, and names the process's addresses.
func TestBundleCompiled(t *testing.T) {
	const memory = 0x7f00_0000_0000
	h := bundlebuild.NewHost()
	h.Entries = map[string][]byte{
		bundle.DumpName("stacks"): stackDump(t, [][]byte{stackRecord(2, "", memory+0x11)}),
		bundle.DumpName("counts"): countDump(t, [5]any{0, -14, bundlebuild.Process, "work", 5}),
		bundle.MapsName(bundlebuild.Process): []byte("7f0000000000-7f0000001000 rwxp 00000000 00:00 0\n" +
			"7fff00000000-7fff00002000 r-xp 00000000 00:00 0 [vdso]\n"),
		bundle.PerfMapName(bundlebuild.Process): []byte("7f0000000000 20 f\n"),
		bundle.CompiledName(bundlebuild.Process): []byte(`{"began": 7, "vdso": "0x7fff00000000", ` +
			`"perf_map": {"path": "/tmp/perf-3.map", "written": 9}}`),
	}
	path := filepath.Join(t.TempDir(), "capture.data")
	must.Write(t, path, h.Bundle())
	id := buildid.Make(buildid.JIT, []byte("perf map"))
	var asked []sideband.JITQuery
	_, p := foldPath(t, path, Options{
		Stacks: StackOptions{Key: fieldsOf(t, "user_stack_id:0,kernel_stack_id:4,pid:8,comm:12:4")},
		JIT: func(q *sideband.JITQuery) sideband.JITCode {
			asked = append(asked, *q)
			return sideband.JITCode{Map: id}
		}})
	if len(asked) != 1 || len(asked[0].PerfMaps) != 1 || len(asked[0].Dumps) != 0 {
		t.Fatalf("asked %+v", asked)
	}
	q, f := &asked[0], asked[0].PerfMaps[0]
	if q.PID != bundlebuild.Process || q.VDSO != 0x7fff00000000 || q.Host != h.Name ||
		q.FirstNanos == 0 || q.EndNanos <= q.FirstNanos || q.BeginNanos != 0 ||
		len(q.Memory) != 1 || q.Memory[0].Start != memory {
		t.Errorf("asked %+v", q)
	}
	if f.Began != 7 || f.Written != 9 || f.VDSO != q.VDSO || f.Size != 18 ||
		f.Name != path+": "+bundle.PerfMapName(bundlebuild.Process) {
		t.Errorf("file %+v", f)
	}
	o := objectOf(t, p, ingest.PerfMapPath(bundlebuild.Process))
	if o.Kind != ingest.PerfMap || o.ID != id {
		t.Errorf("object %+v", o)
	}
	if len(p.Locations) != 1 || p.Locations[0].Offset != memory+0x11 {
		t.Errorf("locations %+v", p.Locations)
	}

	// Unreadable facts are reported, and the file is identified by its number.
	h.Entries[bundle.CompiledName(bundlebuild.Process)] = []byte("{")
	must.Write(t, path, h.Bundle())
	asked = nil
	_, p = foldPath(t, path, Options{
		Stacks: StackOptions{Key: fieldsOf(t, "user_stack_id:0,kernel_stack_id:4,pid:8,comm:12:4")},
		JIT: func(q *sideband.JITQuery) sideband.JITCode {
			asked = append(asked, *q)
			return sideband.JITCode{}
		}})
	if len(asked) != 1 || len(asked[0].PerfMaps) != 1 || asked[0].PerfMaps[0].VDSO != 0 ||
		!slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
			return w.Partial && strings.Contains(w.Text, "compiled.json")
		}) {
		t.Errorf("asked %+v, warnings %+v", asked, p.Stats.Warnings)
	}
}
