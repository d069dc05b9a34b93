package callers

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	. "symbolize/fixtures/callsbuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/calls"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/calltab"
)

// world is some objects in one process.
type world struct {
	t     *testing.T
	names []string
	built map[string]*Built
	codes map[string]*Code
}

func newWorld(t *testing.T, objects map[string]*Object, order ...string) *world {
	w := &world{t: t, names: order, built: make(map[string]*Built), codes: make(map[string]*Code)}
	for _, name := range order {
		b := objects[name].Build()
		f, err := elf.Open(name, bytes.NewReader(b.File), int64(len(b.File)))
		if err != nil {
			t.Fatal(err)
		}
		table, err := calls.Read(f, b.Rules, calls.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a, why := resolve.NewFileAddresses(&ingest.Object{Kind: ingest.ELF}, &store.Manifest{}, f.Segments)
		if why != ingest.ReasonNone {
			t.Fatal(why)
		}
		w.built[name], w.codes[name] = b, NewCode(stored(t, table), a)
	}
	return w
}

func stored(t *testing.T, table *calls.Table) *calltab.Table {
	encoded := calltab.Encode(table)
	tab, err := calltab.Open(encoded.Header, encoded)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// place returns the object and offset of a place: "prog:main/0" behind the first call of a function,
// "prog:main" at its last instruction, "prog:main+2", or "unmapped" and "jit".
func (w *world) place(text string, exact bool) (object string, off addr.Offset) {
	object, rest, ok := strings.Cut(text, ":")
	if !ok {
		return text, 0
	}
	b := w.built[object]
	var at addr.Addr
	switch {
	case strings.Contains(rest, "/"):
		name, n, _ := strings.Cut(rest, "/")
		at = b.Returns[name][n[0]-'0']
	case strings.Contains(rest, "+"):
		name, n, _ := strings.Cut(rest, "+")
		at = b.Start[name] + addr.Addr(n[0]-'0')
	default:
		at = b.Inside[rest]
	}
	if !exact {
		at--
	}
	return object, addr.Offset(at)
}

// profile returns a profile of one sample with a stack, the innermost place first.
func (w *world) profile(stack []string) *ingest.Profile {
	p := &ingest.Profile{Strings: []string{""}, Events: []ingest.Event{{Name: "cycles"}},
		Callers: make([]ingest.StackID, 1), Leaves: make([]ingest.LocationID, 1)}
	for i, name := range w.names {
		p.Objects = append(p.Objects, ingest.Object{Kind: ingest.ELF, Kernel: ingest.NoObject,
			File: ingest.FileRef{Path: "/" + name}, ID: buildid.Make(buildid.GNU, []byte{1, 2, 3, byte(i)})})
	}
	numbers := map[string]ingest.ObjectID{"jit": 0, "unmapped": 0}
	for i := range w.names {
		numbers[w.names[i]] = ingest.ObjectID(i)
	}
	for _, o := range []ingest.Object{
		{Kind: ingest.Anonymous, File: ingest.FileRef{Path: ingest.AnonymousPath}, Kernel: ingest.NoObject},
		{Kind: ingest.Unmapped, File: ingest.FileRef{Path: ingest.UnmappedPath},
			Reason: ingest.OutsideMapping, Kernel: ingest.NoObject},
	} {
		numbers[map[ingest.ObjectKind]string{ingest.Anonymous: "jit", ingest.Unmapped: "unmapped"}[o.Kind]] =
			ingest.ObjectID(len(p.Objects))
		p.Objects = append(p.Objects, o)
	}
	at := ingest.StackID(0)
	for i := len(stack) - 1; i >= 0; i-- {
		object, off := w.place(stack[i], i == 0)
		p.Locations = append(p.Locations, ingest.Location{Object: numbers[object], Offset: off})
		p.Callers, p.Leaves = append(p.Callers, at), append(p.Leaves, ingest.LocationID(len(p.Locations)-1))
		at = ingest.StackID(len(p.Callers) - 1)
	}
	p.Samples = []ingest.Sample{{Stack: at, Count: 1, Weight: 1, PID: -1, TID: -1, CPU: -1}}
	return p
}

// complete returns the completed stack in words: functions, with * if only the function is known.
func (w *world) complete(stack []string, opts Options) string {
	p := w.profile(stack)
	opts.Code = func(o *ingest.Object) *Code { return w.codes[strings.TrimPrefix(o.File.Path, "/")] }
	q, chain := Complete(p, opts)
	var out []string
	list := q.Stack(nil, q.Samples[0].Stack)
	if chain != nil {
		again := chain(p.Stack(nil, p.Samples[0].Stack))
		for i := range list {
			if again[i] != list[i] {
				w.t.Errorf("%q: a replay has %v, the profile %v", stack, again, list)
			}
		}
	}
	for i, l := range list {
		loc := q.Locations[l]
		o := &q.Objects[loc.Object]
		name := strings.TrimPrefix(o.File.Path, "/")
		if c := w.codes[name]; c != nil {
			a, _ := c.Addrs.Of(loc.Offset)
			if i > 0 && !o.Entry && c.Calls.At(a).State != calls.Signal {
				if !c.Calls.At(a).Returns {
					w.t.Errorf("%q: frame %d is behind no call", stack, i)
				}
			}
			for f, start := range w.built[name].Start {
				if n := c.Calls.At(a).Func; n >= 0 && n == c.Calls.At(start).Func {
					name = f
				}
			}
		}
		if o.Entry {
			name += "*"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// libc has functions without frames, one of which others jump to, and exported ones.
var libc = &Object{Funcs: []Func{
	{Name: "memcmp", Exported: true, Ops: Body(Work())},
	{Name: "usleep", Exported: true, Ops: Body(Call("nanosleep"))},
	{Name: "nanosleep", Ops: Body(Call("syscall"))},
	{Name: "syscall", Ops: Body(Work())},
	{Name: "stpcpy", Exported: true, Ops: append(Work(), Jump("copy")...)},
	{Name: "strcpy", Exported: true, Ops: append(Work(), Jump("copy")...)},
	{Name: "copy", Ops: Body(Work())},
	{Name: "qsort", Exported: true, Ops: Body(CallAny(), Call("merge"))},
	{Name: "merge", Ops: Body(Call("step"), CallAny())},
	{Name: "step", Ops: Body(Work())},
	{Name: "twice", Exported: true, Ops: Body(Call("one"), Call("other"))},
	{Name: "one", Ops: Body(Call("deep"))},
	{Name: "other", Ops: Body(Call("deep"))},
	{Name: "deep", Ops: Body(Work())},
	{Name: "uses", Exported: true, Ops: Body(Use(), Call("deep"))},
}}

var program = &Object{Imports: []string{"memcmp", "usleep", "stpcpy", "qsort", "twice", "uses", "elsewhere"},
	Funcs: []Func{
		{Name: "start", Ops: Body(Outermost(), CallAny())},
		{Name: "main", Ops: Body(Frame(), Call("compare"), Call("sleep"), Call("copies"), Call("sorts"),
			Call("both"), Call("out"), Call("jumps"), Call("recurse"), Call("tricks"), CallAny(), Leave())},
		{Name: "compare", Ops: Body(Frame(), Call("memcmp"), Leave())},
		{Name: "sleep", Ops: Body(Frame(), Call("usleep"), Call("usleep"), Leave())},
		{Name: "copies", Ops: Body(Frame(), Call("stpcpy"), Leave())},
		{Name: "sorts", Ops: Body(Frame(), Call("qsort"), Leave())},
		{Name: "both", Ops: Body(Frame(), Call("twice"), Leave())},
		{Name: "out", Ops: Body(Frame(), Call("elsewhere"), Call("memcmp"), Leave())},
		{Name: "jumps", Ops: append(Work(), Jump("compare")...)},
		{Name: "recurse", Ops: Body(Frame(), Call("recurse"), Leave())},
		{Name: "tricks", Ops: Body(Frame(), Call("uses"), Leave())},
		{Name: "bare", NoRules: true, Ops: Body(Call("compare"))},
		{Name: "back", Ops: Body(Signal())},
	}}

// TestComplete checks and completes stacks: what the frame pointers of such programs give.
func TestComplete(t *testing.T) {
	w := newWorld(t, map[string]*Object{"libc": libc, "prog": program}, "libc", "prog")
	for _, c := range []struct {
		name  string
		stack []string
		want  string
		gaps  bool
	}{
		{name: "frames", stack: []string{"prog:compare+8", "prog:main/0"}, want: "compare main"},
		{name: "a leaf function's caller", stack: []string{"libc:memcmp", "prog:main/0"},
			want: "memcmp compare main"},
		{name: "several callers", stack: []string{"libc:syscall", "prog:main/1"},
			want: "syscall nanosleep usleep sleep* main"},
		{name: "a prologue", stack: []string{"prog:compare+1", "prog:main/0"}, want: "compare main", gaps: true},
		{name: "jumps after the call", stack: []string{"libc:copy", "prog:main/2"}, want: "copy copies main"},
		{name: "a callback hides", stack: []string{"libc:memcmp", "prog:main/3"}, gaps: true,
			want: "memcmp […] sorts* main"},
		{name: "not printed", stack: []string{"libc:memcmp", "prog:main/3"}, want: "memcmp sorts* main"},
		{name: "nobody else calls it", stack: []string{"libc:step", "prog:main/3"},
			want: "step merge qsort sorts* main"},
		{name: "two ways", stack: []string{"libc:deep", "prog:main/4"}, gaps: true,
			want: "deep […] both* main"},
		{name: "through an unknown library", stack: []string{"libc:syscall", "prog:main/5"}, gaps: true,
			want: "syscall nanosleep usleep […] out* main"},
		{name: "a jump before the frame", stack: []string{"libc:memcmp", "prog:main/6"},
			want: "memcmp compare main"},
		{name: "an indirect call", stack: []string{"libc:memcmp", "prog:start/0"}, gaps: true,
			want: "memcmp […] start"},
		{name: "an indirect call of the only caller", stack: []string{"libc:step", "prog:start/0"}, gaps: true,
			want: "step merge […] start"},
		{name: "a recursion", stack: []string{"prog:recurse+1", "prog:recurse/0", "prog:main/7"},
			want: "recurse recurse main"},
		{name: "the register has another value", stack: []string{"libc:uses", "prog:main/8"},
			want: "uses [callers unknown]"},
		{name: "below it", stack: []string{"libc:deep", "prog:main/8"}, want: "deep [callers unknown]"},
		{name: "no call before", stack: []string{"prog:compare+8", "prog:main+4"}, want: "compare [callers unknown]"},
		{name: "unmapped", stack: []string{"prog:compare+8", "unmapped", "prog:main/0"},
			want: "compare [callers unknown]"},
		{name: "no rules", stack: []string{"prog:bare", "prog:main/0"}, want: "bare main"},
		{name: "compiled at run time", stack: []string{"jit", "prog:main/9"}, want: "/anon main"},
		{name: "called by such code", stack: []string{"libc:memcmp", "jit", "prog:main/9"}, gaps: true,
			want: "memcmp […] /anon main"},
		{name: "a signal", stack: []string{"prog:compare+8", "prog:back+1", "prog:main/0"}, gaps: true,
			want: "compare back […] main"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			if got := w.complete(c.stack, Options{Gaps: c.gaps, Whole: true}); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestImported binds symbols to the function that has them with their version.
func TestImported(t *testing.T) {
	at := func(a addr.Addr) addr.Range { return addr.Range{Start: a, End: a + 16} }
	export := func(name, version string, hidden bool, a addr.Addr) calls.Export {
		return calls.Export{Symbol: calls.Symbol{Name: name, Version: version}, Hidden: hidden, At: a}
	}
	libm := &calls.Table{Funcs: []calls.Func{{Range: at(0x10)}, {Range: at(0x20)}, {Range: at(0x30)}},
		Exports: []calls.Export{export("exp", "", false, 0x30), export("pow", "V1", true, 0x10),
			export("pow", "V2", false, 0x20)}}
	other := &calls.Table{Funcs: []calls.Func{{Range: at(0x50)}},
		Exports: []calls.Export{export("exp", "", false, 0x50), export("pow", "V3", true, 0x50)}}
	for _, c := range []struct {
		name, version string
		want          int32 // of libm, -1 for none
	}{
		{"pow", "V1", 0}, {"pow", "V2", 1}, {"pow", "", 1}, {"pow", "V4", -1}, {"exp", "V1", -1}, {"sin", "", -1},
	} {
		g := &graph{codes: []*Code{nil, {Calls: stored(t, libm)}, {Calls: stored(t, other)}},
			imports: make(map[calltab.Symbol][]function)}
		got := g.imported(calltab.Symbol{Name: calltab.Hash(c.name), Version: c.version})
		want := function{1, c.want}
		if ok := len(got) == 1 && got[0] == want; ok != (c.want >= 0) || !ok && len(got) > 0 {
			t.Errorf("%s@%s: %v", c.name, c.version, got)
		}
	}
}

// TestDamaged completes stacks with a table that cannot be read: they are as without it.
func TestDamaged(t *testing.T) {
	w := newWorld(t, map[string]*Object{"prog": program, "libc": libc}, "prog", "libc")
	b := libc.Build()
	f, err := elf.Open("libc", bytes.NewReader(b.File), int64(len(b.File)))
	if err != nil {
		t.Fatal(err)
	}
	table, err := calls.Read(f, b.Rules, calls.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for len(table.Exports) < 2000 { // so that there are blocks
		x := table.Exports[0]
		x.Name = fmt.Sprint(len(table.Exports))
		table.Exports = append(table.Exports, x)
	}
	e := calltab.Encode(table)
	if len(e.Chunks) == 0 {
		t.Fatal("no blocks")
	}
	e.Chunks[0] = []byte{1}
	tab, err := calltab.Open(e.Header, e)
	if err != nil {
		t.Fatal(err)
	}
	w.codes["libc"].Calls = tab
	var damage []error
	got := w.complete([]string{"libc:memcmp", "prog:compare/0", "prog:main/0"},
		Options{Whole: true, Damaged: func(err error) { damage = append(damage, err) }})
	if want := "libc compare main"; got != want || len(damage) != 1 {
		t.Errorf("%s, want %s; %v", got, want, damage)
	}
}

// TestBounds completes stacks in objects whose functions jump in circles, and in long chains.
func TestBounds(t *testing.T) {
	circle := &Object{}
	const n = 600
	name := func(i int) string {
		return "f" + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10))
	}
	for i := range n {
		circle.Funcs = append(circle.Funcs, Func{Name: name(i), Ops: append(Work(), Jump(name((i+1)%n))...)})
	}
	circle.Funcs = append(circle.Funcs, Func{Name: "main", Ops: Body(Frame(), Call("f000"), Leave())},
		Func{Name: "start", Ops: Body(Frame(), Call("main"), Leave())},
		Func{Name: "ring", Ops: Body(Call("ring2"))}, Func{Name: "ring2", Ops: Body(Call("ring"))},
		Func{Name: "rings", Ops: Body(Frame(), Call("ring"), Leave())})
	w := newWorld(t, map[string]*Object{"prog": circle}, "prog")
	for _, c := range []struct{ stack, want string }{
		{"prog:f300 prog:start/0", "f300 […] main* start"}, // further than the search goes
		{"prog:f003 prog:start/0", "f003 […] main* start"}, // all of the circle may jump
		{"prog:ring2+0 prog:start/0", "ring2 ring […] main* start"},
	} {
		if got := w.complete(strings.Fields(c.stack), Options{Gaps: true, Whole: true}); got != c.want {
			t.Errorf("%s: %s, want %s", c.stack, got, c.want)
		}
	}
}

// TestARM64 completes stacks of arm64, in which a leaf function's caller and that of a prologue are
// missing: their return addresses are in the link register.
func TestARM64(t *testing.T) {
	w := newWorld(t, map[string]*Object{"prog": {ARM64: true, Funcs: []Func{
		{Name: "main", Ops: Body(Frame(), Call("work"), Call("any"), Call("both"), Call("jumps"), Leave())},
		{Name: "work", Ops: Body(Frame(), Call("leaf"), Leave())},
		{Name: "any", Ops: Body(Frame(), Call("leaf"), CallAny(), Leave())},
		{Name: "both", Ops: Body(Frame(), Call("one"), Call("other"), Leave())},
		{Name: "one", Ops: append(Work(), Jump("leaf")...)},
		{Name: "other", Ops: Body(Work())},
		{Name: "jumps", Ops: append(Work(), Jump("work")...)},
		{Name: "leaf", Ops: Body(Work())},
	}}}, "prog")
	for _, c := range []struct {
		name  string
		stack []string
		want  string
	}{
		{"a frame", []string{"prog:work", "prog:main/0"}, "work main"},
		{"a leaf function's caller", []string{"prog:leaf", "prog:main/0"}, "leaf work main"},
		{"a prologue's", []string{"prog:work+0", "prog:main/0"}, "work main"},
		{"a prologue below another frame", []string{"prog:other+0", "prog:main/2"}, "other both main"},
		{"before the frame pointer is set", []string{"prog:work+4", "prog:main/0"}, "work main"},
		{"an indirect call hides", []string{"prog:leaf", "prog:main/1"}, "leaf […] any* main"},
		{"a jump to it", []string{"prog:leaf", "prog:main/2"}, "leaf both main"},
		{"a jump before the frame", []string{"prog:leaf", "prog:main/3"}, "leaf work main"},
		{"no call before", []string{"prog:work", "prog:main+8"}, "work [callers unknown]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			if got := w.complete(c.stack, Options{Gaps: true, Whole: true}); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestLikely inserts the callers that calls show where an indirect call may hide others.
func TestLikely(t *testing.T) {
	w := newWorld(t, map[string]*Object{"prog": {Funcs: []Func{
		{Name: "main", Ops: Body(Frame(), Call("once"), Call("twice"), Call("only"), Leave())},
		{Name: "once", Ops: Body(Frame(), Call("passes"), CallAny(), Leave())},
		{Name: "twice", Ops: Body(Frame(), Call("leaf"), Call("passes"), CallAny(), Leave())},
		{Name: "only", Ops: Body(Frame(), CallAny(), Leave())},
		{Name: "passes", Exported: true, Ops: Body(Call("leaf"))},
		{Name: "leaf", Exported: true, Ops: Body(Work())},
	}}}, "prog")
	for _, c := range []struct {
		name   string
		stack  []string
		proven string
		likely string
	}{
		{"one candidate", []string{"prog:leaf", "prog:main/0"}, "leaf […] once* main",
			"leaf [likely] passes [likely] once main"},
		{"two candidates", []string{"prog:leaf", "prog:main/1"}, "leaf […] twice* main", "leaf […] twice* main"},
		{"no candidate", []string{"prog:leaf", "prog:main/2"}, "leaf […] only* main", "leaf […] only* main"},
		{"proven", []string{"prog:once+4", "prog:main/0"}, "once main", "once main"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			if got := w.complete(c.stack, Options{Gaps: true, Whole: true}); got != c.proven {
				t.Errorf("proven: %q, want %q", got, c.proven)
			}
			if got := w.complete(c.stack, Options{Gaps: true, Whole: true, Likely: true}); got != c.likely {
				t.Errorf("likely: %q, want %q", got, c.likely)
			}
		})
	}
}
