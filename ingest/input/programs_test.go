package input

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/fixtures/bpfbuild"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/object/bpf"
)

// programFile is where the functions of the tests' programs have their lines.
const programFile = "a.bpf.c"

// program is a program with one function per start address, a0, a1 and so on for tag 0xa0. Its own
// tag is that byte over and over, and its functions' tags count up from there.
func program(id uint32, tag byte, starts ...uint64) bpfbuild.Program {
	p := bpfbuild.Program{Type: 17, ID: id, BTFID: id,
		Tag: [8]byte(bytes.Repeat([]byte{tag}, 8))}
	for i, start := range starts {
		p.Funcs = append(p.Funcs, bpfbuild.Func{
			Name:  string([]rune{rune('a' + tag>>4 - 10), rune('0' + i)}),
			Tag:   [8]byte(bytes.Repeat([]byte{tag + 1 + byte(i)}, 8)),
			Start: start, Code: make([]byte, 0x40+0x10*i),
			Lines: []bpfbuild.Line{{Line: uint32(10 * (i + 1)), File: programFile, Source: "{"},
				{At: 0x10, Insn: 2, Line: uint32(10*(i+1)) + 1, File: programFile, Source: "x++;"}},
		})
	}
	p.Name = p.Funcs[0].Name
	return p
}

// symbolOf is the kernel's name of function i; perf's own is by the function's tag.
func symbolOf(p *bpfbuild.Program, i int, perf bool) string {
	tag := p.Funcs[i].Tag
	if i == 0 && !perf {
		tag = p.Tag
	}
	return "bpf_prog_" + bpf.Tag(tag).String() + "_" + p.Funcs[i].Name
}

func programCapture(big bool) capture {
	c := capture{perfbuild.NewOrder(big)}
	c.FeatureString(perfbuild.FeatureArch, "x86_64")
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	return c
}

// know adds the information of programs.
func (c capture) know(programs ...bpfbuild.Program) {
	info, btf := bpfbuild.Sections(c.BigEndian, programs...)
	c.Feature(perfbuild.FeatureBPFProgInfo, info)
	c.Feature(perfbuild.FeatureBPFBTF, btf)
}

// load has a thread load a program; at time 0 perf made the records up.
func (c capture) load(p *bpfbuild.Program, tid int32, t uint64) {
	where := perfbuild.At{PID: tid, TID: tid, Time: t}
	for i := range p.Funcs {
		f := &p.Funcs[i]
		c.KSymbol(f.Start, uint32(len(f.Code)), 1, false, symbolOf(p, i, t == 0), where)
	}
	c.BPFEvent(1, p.ID, p.Tag, where)
}

// unload removes it by a kernel thread.
func (c capture) unload(p *bpfbuild.Program, t uint64) {
	where := perfbuild.At{PID: 29, TID: 29, Time: t}
	for i := range p.Funcs {
		f := &p.Funcs[i]
		c.KSymbol(f.Start, uint32(len(f.Code)), 1, true, symbolOf(p, i, false), where)
	}
	c.BPFEvent(2, p.ID, p.Tag, where)
}

const (
	slotA = 0xffffffffc0200b94
	slotB = 0xffffffffc0300218
	slotC = 0xffffffffc0400010
)

// opened opens a capture and folds it.
func opened(t *testing.T, c capture) (*ingest.Profile, []bpf.Program) {
	t.Helper()
	x, err := openBytes(t, c.Bytes(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	programs, err := x.Programs()
	if err != nil {
		t.Fatal(err)
	}
	p, err := x.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkProfile(t, p)
	if again, err := x.Programs(); err != nil || len(again) != len(programs) ||
		len(again) > 0 && &again[0] != &programs[0] {
		t.Error("programs are decoded twice")
	}
	return p, programs
}

// TestProgramsByTime has two programs at one address, one after the other, and before, between and
// after them none.
func TestProgramsByTime(t *testing.T) {
	for _, big := range []bool{false, true} {
		one, two := program(5, 0xa0, slotA, slotB), program(6, 0xb0, slotA-8)
		two.Funcs[0].Code = make([]byte, 0x80)
		c := programCapture(big)
		c.know(two, one)
		for _, when := range []uint64{5, 15, 25, 35, 45} {
			c.hit(7, when, cK, slotA+4, slotB+5)
		}
		c.load(&one, 7, 10)
		c.unload(&one, 20)
		c.load(&two, 8, 30)
		c.unload(&two, 40)
		p, programs := opened(t, c)
		f0, f1, other := symbolOf(&one, 0, false), symbolOf(&one, 1, false),
			symbolOf(&two, 0, false)
		const none = "[unmapped kernel]"
		want := []string{
			":7: " + none + " " + none + " 3 3",
			":7: " + f0 + "+0x4 " + f1 + "+0x4 1 1",
			":7: " + other + "+0xc " + none + " 1 1",
		}
		if got := dump(p); !sameSet(got, want) {
			t.Errorf("big %v: got %q, want %q", big, got, want)
		}
		if len(programs) != 2 || programs[0].ID != 5 || programs[1].ID != 6 {
			t.Fatalf("programs %+v", programs)
		}
		for _, o := range []*ingest.Object{objectOf(t, p, f0), objectOf(t, p, f1),
			objectOf(t, p, other)} {
			if o.NoImage || o.Symbol != o.File.Path || o.Kind != ingest.JIT ||
				o.IDSource != ingest.IDDerived {
				t.Errorf("object %+v", o)
			}
		}
		if o := objectOf(t, p, f1); o.ID != programs[0].Identity(1, "x86_64") || o.Length != 0x50 {
			t.Errorf("object %+v", o)
		}
		if l := programs[0].Funcs[1].LineAt(0x12); l == nil || l.Line != 21 || l.File != programFile {
			t.Errorf("line %+v", l)
		}
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// TestProgramOverImage: a trampoline's 4,096 bytes cover a program that starts in them; the program
// wins while it is there. An address equal to its end is a return address into it.
func TestProgramOverImage(t *testing.T) {
	p := program(5, 0xa0, slotA)
	c := programCapture(false)
	c.know(p)
	c.load(&p, 7, 10)
	c.KSymbol(slotA&^0xfff, 4096, 1, false, "bpf_trampoline_6442", at(12))
	c.unload(&p, 20)
	c.hit(7, 15, cK, slotA, slotA+0x40, slotA-1, slotA+0x41)
	c.hit(7, 25, cK, slotA)
	got, _ := opened(t, c)
	symbol := symbolOf(&p, 0, false)
	want := []string{":7: " + symbol + "+0x0 " + symbol + "+0x3f bpf_trampoline_6442+0xb92 " +
		"bpf_trampoline_6442+0xbd4 1 1", ":7: bpf_trampoline_6442+0xb94 1 1"}
	if !sameSet(dump(got), want) {
		t.Errorf("got %q, want %q", dump(got), want)
	}
	if o := objectOf(t, got, "bpf_trampoline_6442"); o.NoImage {
		t.Error("a trampoline has no image to capture")
	}
}

// TestLoadedBefore: a program that was there before the recording, named by perf after its first
// function's tag, and the same one loaded again are one object with the kernel's name.
func TestLoadedBefore(t *testing.T) {
	before, again := program(5, 0xa0, slotA, slotB), program(9, 0xa0, slotC, slotB+0x400)
	again.BTFID = 77
	c := programCapture(false)
	c.know(before, again)
	c.load(&before, 0, 0)
	c.hit(7, 5, cK, slotA+4, slotB+1)
	c.load(&again, 7, 10)
	c.hit(7, 15, cK, slotC+4, slotB+0x401)
	p, _ := opened(t, c)
	f0, f1 := symbolOf(&before, 0, false), symbolOf(&before, 1, false)
	if want := []string{":7: " + f0 + "+0x4 " + f1 + "+0x0 2 2"}; !slices.Equal(dump(p), want) {
		t.Errorf("got %q, want %q", dump(p), want)
	}
}

// TestProgramGone: a program that was unloaded before it could be read keeps its name, and
// is listed with the reason.
func TestProgramGone(t *testing.T) {
	gone, known := program(5, 0xa0, slotA, slotB), program(6, 0xb0, slotC)
	c := programCapture(false)
	c.know(known)
	c.load(&gone, 7, 10)
	c.hit(7, 15, cK, slotA+4, slotB+1, slotC+1)
	c.unload(&gone, 20)
	c.load(&known, 7, 12)
	p, programs := opened(t, c)
	for i := range gone.Funcs {
		o := objectOf(t, p, symbolOf(&gone, i, false))
		want := bpf.SymbolIdentity("x86_64", o.Symbol, uint64(len(gone.Funcs[i].Code)))
		if !o.NoImage || o.ID != want || o.Reason != ingest.ReasonNone {
			t.Errorf("object %+v", o)
		}
	}
	if o := objectOf(t, p, symbolOf(&known, 0, false)); o.NoImage {
		t.Errorf("object %+v", o)
	}
	if len(programs) != 2 {
		t.Fatalf("programs %+v", programs)
	}
	g := &programs[0]
	if g.ID != 5 || g.Missing != bpf.MissingGone || g.Raw != nil || len(g.Funcs) != 2 ||
		g.Tag != gone.Tag || g.Symbol(1) != symbolOf(&gone, 1, false) || g.Funcs[1].Start != slotB {
		t.Errorf("program %+v", g)
	}
}

// TestNothingRecorded has no information of any program in it.
func TestNothingRecorded(t *testing.T) {
	gone := program(5, 0xa0, slotA)
	c := programCapture(false)
	c.load(&gone, 0, 0)
	c.load(&gone, 7, 1) // loaded while perf listed the programs
	c.KSymbol(slotB, 0x20, 1, false, "bpf_prog_0123456789abcdef_x", at(3))
	_, programs := opened(t, c)
	for i := range programs {
		if programs[i].Missing != bpf.MissingNotRecorded {
			t.Errorf("program %d: %q", programs[i].ID, programs[i].Missing)
		}
	}
	if len(programs) != 2 || programs[0].ID != 0 || programs[1].ID != 5 {
		t.Errorf("programs %+v", programs)
	}
}

// TestMatchPrograms matches records with programs in cases where several would fit.
func TestMatchPrograms(t *testing.T) {
	one, two := program(5, 0xa0, slotA, slotB), program(6, 0xb0, slotC, slotC+0x100)
	ksym := func(c capture, p *bpfbuild.Program, i int, at perfbuild.At) {
		c.KSymbol(p.Funcs[i].Start, uint32(len(p.Funcs[i].Code)), 1, false,
			symbolOf(p, i, false), at)
	}
	thread := func(tid int32, t uint64) perfbuild.At {
		return perfbuild.At{PID: tid, TID: tid, Time: t}
	}
	for name, records := range map[string]func(c capture){
		"two threads at once": func(c capture) {
			ksym(c, &one, 0, thread(7, 10))
			ksym(c, &two, 0, thread(8, 11))
			ksym(c, &one, 1, thread(7, 12))
			ksym(c, &two, 1, thread(8, 13))
			c.BPFEvent(1, 6, two.Tag, thread(8, 14))
			c.BPFEvent(1, 5, one.Tag, thread(7, 15))
		},
		"events lost": func(c capture) {
			for i := range 2 {
				ksym(c, &one, i, thread(7, 10))
				ksym(c, &two, i, thread(7, 11))
			}
		},
		"the first event lost": func(c capture) {
			for i := range 2 {
				ksym(c, &one, i, thread(7, 10))
			}
			c.load(&two, 7, 11)
		},
		"later records first in the file": func(c capture) {
			c.load(&two, 7, 14)
			c.load(&one, 7, 10)
		},
	} {
		c := programCapture(false)
		c.know(one, two)
		records(c)
		c.hit(7, 20, cK, slotA, slotB+2, slotC+2, slotC+0x102)
		p, programs := opened(t, c)
		if len(programs) != 2 {
			t.Errorf("%s: %d programs", name, len(programs))
		}
		for _, prog := range []*bpfbuild.Program{&one, &two} {
			for i := range prog.Funcs {
				if o := objectOf(t, p, symbolOf(prog, i, false)); o.NoImage {
					t.Errorf("%s: %s is not matched", name, o.Symbol)
				}
			}
		}
	}
}

// TestReloadedUnread: of three loads of equal code at one address the second was read. Which one
// that was is known by its ID.
func TestReloadedUnread(t *testing.T) {
	a, b, d := program(5, 0xa0, slotA), program(6, 0xa0, slotA), program(7, 0xa0, slotA)
	c := programCapture(false)
	c.know(b)
	for i, p := range []*bpfbuild.Program{&a, &b, &d} {
		c.load(p, 7, uint64(10*i+10))
		c.hit(7, uint64(10*i+12), cK, slotA+uint64(i))
		c.unload(p, uint64(10*i+15))
	}
	p, programs := opened(t, c)
	noImage := map[uint64]bool{}
	for _, l := range p.Locations {
		noImage[uint64(l.Offset)] = p.Objects[l.Object].NoImage
	}
	if len(noImage) != 3 || !noImage[0] || noImage[1] || !noImage[2] {
		t.Errorf("without image: %v", noImage)
	}
	if len(programs) != 3 || programs[0].Missing == "" || programs[1].Missing != "" {
		t.Errorf("programs %+v", programs)
	}
}

// TestHiddenAddresses: under kptr_restrict the functions are distinguished by their
// places. Nothing of their code is known.
func TestHiddenAddresses(t *testing.T) {
	p := program(5, 0xa0, slotA, slotB)
	known := p
	known.Hide = bpfbuild.Jited
	c := programCapture(false)
	c.know(known)
	c.load(&p, 0, 0)
	c.hit(7, 5, cK, slotA+4, slotB+1)
	got, programs := opened(t, c)
	if len(programs) != 1 || programs[0].Missing != bpf.MissingHidden {
		t.Fatalf("programs %+v", programs)
	}
	for i := range p.Funcs {
		o := objectOf(t, got, symbolOf(&p, i, false))
		want := bpf.SymbolIdentity("x86_64", o.Symbol, uint64(len(p.Funcs[i].Code)))
		if !o.NoImage || o.ID != want || programs[0].Identity(i, "x86_64") != want ||
			uint64(programs[0].Funcs[i].Start) != p.Funcs[i].Start {
			t.Errorf("object %+v, function %+v", o, programs[0].Funcs[i])
		}
	}
}

// TestLongNames: without BTF the records know the names in full.
func TestLongNames(t *testing.T) {
	p := program(5, 0xa0, slotA, slotB)
	p.BTFID, p.Name = 0, "a_name_of_fift"
	p.Funcs[0].Name, p.Funcs[1].Name = "a_name_of_fifty_bytes", "F"
	c := programCapture(false)
	c.know(p)
	c.load(&p, 7, 3)
	c.hit(7, 5, cK, slotA+4, slotB+1)
	got, programs := opened(t, c)
	objectOf(t, got, symbolOf(&p, 0, false))
	if s := programs[0].Symbol(0); s != symbolOf(&p, 0, false) {
		t.Errorf("function 0 is %s", s)
	}
}

// TestUnreadTypes: records have the names of subprograms also for programs without recorded BTF.
func TestUnreadTypes(t *testing.T) {
	p := program(5, 0xa0, slotA, slotB)
	p.Funcs[1].Name = "count"
	c := programCapture(false)
	info, _ := bpfbuild.Sections(false, p)
	c.Feature(perfbuild.FeatureBPFProgInfo, info)
	c.load(&p, 7, 3)
	c.hit(7, 5, cK, slotA+4, slotB+1)
	got, programs := opened(t, c)
	for i := range p.Funcs {
		objectOf(t, got, symbolOf(&p, i, false))
		if s := programs[0].Symbol(i); s != symbolOf(&p, i, false) {
			t.Errorf("function %d is %s", i, s)
		}
	}
}

// TestDamagedPrograms: names stay where the features are damaged, with a warning.
func TestDamagedPrograms(t *testing.T) {
	one, two := program(5, 0xa0, slotA), program(6, 0xb0, slotB)
	info, btf := bpfbuild.Sections(false, one, two)
	damaged := bytes.Clone(btf)
	damaged[12]++
	for name, x := range map[string]struct{ info, btf []byte }{
		"info cut off": {info: info[:len(info)-3], btf: btf},
		"BTF cut off":  {info: info, btf: btf[:len(btf)-3]},
		"BTF damaged":  {info: info, btf: damaged},
		"no BTF":       {info: info},
	} {
		c := programCapture(false)
		c.Feature(perfbuild.FeatureBPFProgInfo, x.info)
		c.Feature(perfbuild.FeatureBPFBTF, x.btf)
		c.load(&one, 7, 3)
		c.load(&two, 7, 4)
		c.hit(7, 5, cK, slotA+4, slotB+1)
		opened, err := openBytes(t, c.Bytes(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := opened.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		objectOf(t, p, symbolOf(&one, 0, false))
		objectOf(t, p, symbolOf(&two, 0, false))
		programs, err := opened.Programs()
		if (err == nil) != (name == "no BTF") || len(programs) != 2 {
			t.Errorf("%s: %d programs, %v", name, len(programs), err)
		}
		warned := len(p.Stats.Warnings) > 0 && p.Stats.Warnings[0].Partial
		if warned != (err != nil) {
			t.Errorf("%s: warnings %+v", name, p.Stats.Warnings)
		}
	}
}

// TestProgramsOfUnreadable has programs in its features and records that cannot be
// read.
func TestProgramsOfUnreadable(t *testing.T) {
	one := program(5, 0xa0, slotA)
	c := programCapture(false)
	c.know(one)
	c.Record(81, 0, make([]byte, 16))
	x, err := openBytes(t, c.Bytes(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	programs, err := x.Programs()
	if err != nil || len(programs) != 1 || programs[0].ID != 5 {
		t.Errorf("%d programs, %v", len(programs), err)
	}
	p, err := x.Profile(t.Context())
	if err != nil || len(p.Stats.Warnings) == 0 || !p.Stats.Warnings[0].Partial ||
		!strings.Contains(p.Stats.Warnings[0].Text, "COMPRESSED record") {
		t.Errorf("%v, %+v", err, p.Stats.Warnings)
	}
}

// TestMetadata keeps the metadata of programs.
func TestMetadata(t *testing.T) {
	c := programCapture(false)
	body := append([]byte("bpf_prog_0123456789abcdef_p"), make([]byte, 512-27)...)
	body = c.Order().AppendUint64(body, 1)
	value := make([]byte, 64+256)
	copy(value, "version")
	copy(value[64:], "2.1")
	c.Record(84, 0, append(body, value...))
	c.Record(84, 0, body) // its one value is missing
	c.hit(7, 5, cK, 0xffffffff81000000)
	p := fold(t, c.Bytes(), Options{})
	want := []string{"bpf_prog_0123456789abcdef_p: version=2.1"}
	if !slices.Equal(p.Meta.Comments, want) {
		t.Errorf("comments %q", p.Meta.Comments)
	}
	if p.Stats.BadRecords != 1 {
		t.Errorf("%d bad records", p.Stats.BadRecords)
	}
}

// TestProgramsMerge: loads at other addresses, on hosts of another byte order, are one function: in
// our merge, in pprof's, and in a file that is read again.
func TestProgramsMerge(t *testing.T) {
	here, there := program(5, 0xa0, slotA, slotB), program(900, 0xa0, slotC, slotA)
	there.LoadTime = 5
	there.Funcs[0].Code[3] = 0xcc
	one := programCapture(false)
	one.know(here)
	one.load(&here, 7, 3)
	one.hit(7, 5, cK, slotA+4, slotB+1)
	two := programCapture(true)
	two.know(there)
	two.load(&there, 0, 0)
	two.hit(7, 5, cK, slotC+4, slotA+1)
	var profiles []*ingest.Profile
	var files []*profile.Profile
	for _, c := range []capture{one, two} {
		p, _ := opened(t, c)
		profiles = append(profiles, p)
		var b bytes.Buffer
		if err := pprof.Write(&b, p, pprof.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		f, err := profile.ParseData(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	merged, err := merge.Profiles(profiles)
	if err != nil {
		t.Fatal(err)
	}
	f0, f1 := symbolOf(&here, 0, false), symbolOf(&here, 1, false)
	if want := []string{":7: " + f0 + "+0x4 " + f1 + "+0x0 2 2"}; !slices.Equal(dump(merged),
		want) {
		t.Errorf("got %q, want %q", dump(merged), want)
	}
	pp, err := profile.Merge(files)
	if err != nil {
		t.Fatal(err)
	}
	if len(pp.Sample) != 1 || len(pp.Mapping) != 2 || len(pp.Location) != 2 {
		t.Fatalf("pprof merges into %s", pp)
	}
	o := objectOf(t, merged, f0)
	if m := pp.Mapping[0]; m.File != "["+f0+"]" || m.BuildID != o.ID.String() &&
		"jit:"+m.BuildID != o.ID.String() {
		t.Errorf("mapping %q with build ID %s, want %s", m.File, m.BuildID, o.ID)
	}
}

// manyPrograms is a capture with programs that come, go, were there before, were never read and
// overlap one another.
func manyPrograms(big bool) []byte {
	before, one, two := program(3, 0xa0, slotA, slotC), program(4, 0xb0, slotB), program(6, 0xc0,
		slotB-8, slotB+0x100)
	unread := program(5, 0xd0, slotB+0x10)
	c := programCapture(big)
	c.know(before, one, two)
	c.load(&before, 0, 0)
	c.KSymbol(slotB&^0xfff, 4096, 1, false, "bpf_trampoline_1", at(1))
	for i, p := range []*bpfbuild.Program{&one, &unread, &two, &one, &before} {
		t := uint64(10 * (i + 1))
		c.load(p, int32(7+i%2), t)
		c.hit(7, t+2, cK, slotA+1, slotB+4, slotC, slotB+0x14, slotB+0x101)
		if i != 2 {
			c.unload(p, t+5)
		}
	}
	c.hit(8, 90, cK, slotB+4, slotB+0x14)
	return c.Bytes()
}

// TestProgramsTruncated cuts a capture of programs at every 17th byte: a profile that keeps its
// promises, or an error. (The sections alone: ingest/object/bpf.)
func TestProgramsTruncated(t *testing.T) {
	data := manyPrograms(false)
	profiles, prefixes := 0, 0
	for n := 0; n < len(data); n += 17 {
		prefixes++
		c, err := openReader(data[:n:n], 1)
		if err != nil {
			continue
		}
		p, err := c.Profile(t.Context())
		if err != nil {
			continue
		}
		profiles++
		checkProfile(t, p)
		if _, err := c.Programs(); err == nil && len(p.Stats.Warnings) == 0 {
			t.Errorf("%d bytes of %d are whole", n, len(data))
		}
	}
	if profiles < prefixes/2 {
		t.Errorf("%d profiles of %d prefixes", profiles, prefixes)
	}
}
