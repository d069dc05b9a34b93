package filter

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/fixtures/storebuild"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/bpfprog"
	"symbolize/store/indexer"
)

const (
	fixedID  = "25d5bede07880a4717e27339b881f99c414460ba" // with DWARF, at fixed addresses
	kernelID = "e4f18d9dc1d0e6fc2b17e93e885a647b3c0a6fc1"
	oddID    = "0102030405060708"                         // a library with a strange name of a function
	mixedID  = "fb7864a6cb7fd3c395f87031db3312ca5f4e5974" // position-independent
	nobodyID = "00112233445566778899aabbccddeeff00112233"
	tallyTag = "bpf_prog_a612a69c77159703_fold_digits"
)

// newView returns a view of the recorded programs, kernel and BPF programs.
func newView(t testing.TB) store.View {
	t.Helper()
	dir := t.TempDir()
	odd := elfbuild.Lib([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 0x1000,
		elfbuild.Func{Name: "evil\x1b[2Jname", Size: 0x40})
	must.Write(t, filepath.Join(dir, "odd.so"), odd.Bytes())
	kernel, err := buildid.Parse(kernelID)
	if err != nil {
		t.Fatal(err)
	}
	fixtures := filepath.Join("..", "..", "fixtures")
	paths := []string{dir, filepath.Join(fixtures, "objects"),
		filepath.Join(fixtures, "kernel", "kallsyms"),
		filepath.Join("..", "..", "ingest", "object", "bpfobj", "testdata", "count.bpf.o")}
	overlay := storebuild.Overlay(t, indexer.Options{KallsymsID: kernel}, paths...)
	c, err := input.Open(t.Context(), filepath.Join(fixtures, "captures", "bpf-lines.data"),
		input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	programs, err := c.Programs()
	if err != nil {
		t.Fatal(err)
	}
	_, err = bpfprog.Add(t.Context(), overlay, bpfprog.CaptureInfo{Machine: "x86_64"},
		programs)
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}

// rewrite filters a text in one batch.
func rewrite(t testing.TB, view store.View, opts Options, text string) (string, *Stats) {
	t.Helper()
	var out bytes.Buffer
	r := New(view, opts)
	if err := r.Rewrite(&out, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if p := r.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
	return out.String(), r.Stats()
}

// head is the head of a kernel's stack trace.
const head = "CPU: 0 PID: 7 Comm: cat Not tainted 6.18.44 #1 " + kernelID + "\n"

// The results for the places of forms.
const (
	loopLine    = "/srv/app/src/fixed.c:14"
	callLine    = "/srv/app/src/fixed.c:37"
	exactPlace  = "collatz+0x18 (" + loopLine + ")"
	secondPlace = "main+0x5f (" + callLine + ")"
)

// forms is every form with the tool that prints it. ID is replaced by fixedID.
var forms = []struct{ name, in, want string }{
	{name: "bpftrace ustack(build_id)", in: "    ID 0x114e\n    ID 0x1212\n",
		want: "    " + exactPlace + "\n    " + secondPlace + "\n"},
	{name: "bpftrace, a frame without a build ID first", in: "    7f001234567a\n    ID 0x1212\n",
		want: "    7f001234567a\n    main+0x5f (/srv/app/src/fixed.c:37)\n"},
	{name: "Inspektor Gadget", in: "[0]ID +114e [1]ID +1212\n",
		want: "[0]" + exactPlace + " [1]" + secondPlace + "\n"},
	{name: "Inspektor Gadget, no numbers", in: "ID +114e; ID +1212\n",
		want: exactPlace + "; " + secondPlace + "\n"},
	{name: "scripts over stack maps", in: "ID+0x114e;ID+0x1212\n",
		want: exactPlace + ";" + secondPlace + "\n"},
	{name: "systing", in: "unknown ([buildid:ID]) <0x1212>\n", want: secondPlace + "\n"},
	{name: "systing, no frame name", in: "buildid:ID+0x114e\n", want: exactPlace + "\n"},
	{name: "symbolize itself", in: "[buildid:ID+0x114e]\n", want: exactPlace + "\n"},
	{name: "brackets, offset behind", in: "[buildid:ID] 0x114e\n", want: exactPlace + "\n"},
	{name: "brackets, +", in: "[buildid:ID]+0x114e\n", want: exactPlace + "\n"},
	{name: "brackets, <>", in: "[buildid:ID] <0x114e>\n", want: exactPlace + "\n"},
	{name: "sanitizers, addresses that were moved back",
		in:   "    #1 0x55 in f (/srv/app/bin/fixed+0x40120d) (BuildId: ID)\n",
		want: "    #1 0x55 in f (/srv/app/bin/fixed+0x40120d) (BuildId: ID) main+0x5a (" + callLine + ")\n"},
	{name: "sanitizers, no bracket before", in: "/srv/app/bin/fixed+0x40120d) (BuildId: ID)\n",
		want: "/srv/app/bin/fixed+0x40120d) (BuildId: ID)\n"},
	{name: "sanitizers, no build ID", in: "(/srv/app/bin/fixed+0x40120d) (BuildId: )\n",
		want: "(/srv/app/bin/fixed+0x40120d) (BuildId: )\n"},
	{name: "upper-case build ID", in: strings.ToUpper(fixedID) + " 0x114e\n",
		want: exactPlace + "\n"},
	{name: "kernel module with build ID", in: " collatz+0x18/0x48 [fixed ID]\n",
		want: " collatz+0x18/0x48 (" + loopLine + ") [fixed ID]\n"},
	{name: "no length", in: "collatz+0x18 [fixed ID]\n",
		want: "collatz+0x18 (" + loopLine + ") [fixed ID]\n"},
	{name: "no length, behind the function", in: "collatz+0x999 [fixed ID]\n",
		want: "collatz+0x999 [fixed ID]\n"},
	{name: "offset in a module", in: "fixed+0x114e [fixed ID]\n",
		want: exactPlace + " [fixed ID]\n"},
	{name: "another function of this name", in: " collatz+0x18/0x10 [fixed ID]\n",
		want: " collatz+0x18/0x10 [fixed ID]\n"},
	{name: "? before, address in brackets",
		in:   " [<ffffffffa0000018>] ? collatz+0x18/0x48 [fixed ID]\n",
		want: " [<ffffffffa0000018>] ? collatz+0x18/0x48 (" + loopLine + ") [fixed ID]\n"},
	{name: "perf script, BPF", in: "\tffffffffc0 " + tallyTag + "+0x2d\n",
		want: "\tffffffffc0 " + tallyTag + "+0x2d (/srv/app/src/tally.bpf.c:18)\n"},
	{name: "bcc and bpftrace, decimal offset", in: "    " + tallyTag + "+45\n",
		want: "    " + tallyTag + "+45 (/srv/app/src/tally.bpf.c:18)\n"},
	{name: "kernel oops, BPF, another length", in: " ? " + tallyTag + "+0x2d/0x1000\n",
		want: " ? " + tallyTag + "+0x2d/0x1000 (defined at /srv/app/src/tally.bpf.c:12)\n"},
	{name: "bare tag", in: "prog bpf_prog_a612a69c77159703 ran\n",
		want: "prog bpf_prog_a612a69c77159703_fold_digits (defined at /srv/app/src/tally.bpf.c:12) ran\n"},
	{name: "bpftool has a tag of another kind", in: "tag a612a69c77159703  gpl\n",
		want: "tag a612a69c77159703  gpl\n"},
	{name: "markup",
		in: "{{{module:0:fixed:elf:ID}}}\n{{{mmap:0x7000:0x1000:load:0:rx:0x401000}}}\n" +
			"at {{{bt:0:0x714e}}} {{{bt:1:0x7212}}} {{{pc:0x714e}}} {{{pc:0x7212:ra}}}\n",
		want: "{{{module:0:fixed:elf:ID}}}\n{{{mmap:0x7000:0x1000:load:0:rx:0x401000}}}\n" +
			"at " + exactPlace + " " + secondPlace + " " + exactPlace + " " + secondPlace + "\n"},
	{name: "markup, reset",
		in: "{{{module:0:fixed:elf:ID}}}{{{mmap:0x7000:0x1000:load:0:rx:0x401000}}}" +
			"{{{reset}}}{{{pc:0x714e}}}", want: "{{{module:0:fixed:elf:ID}}}" +
			"{{{mmap:0x7000:0x1000:load:0:rx:0x401000}}}{{{reset}}}{{{pc:0x714e}}}"},
	{name: "no newline at the end", in: "ID 0x114e", want: exactPlace},
	{name: "carriage return", in: "ID 0x114e\r\n", want: exactPlace + "\r\n"},
	{name: "names of debug files are data", in: "(x+0x401010) (BuildId: " + oddID + ")\n",
		want: "(x+0x401010) (BuildId: " + oddID + ") " + texts.Printable("evil\x1b[2Jname") + "+0x10\n"},
	{name: "offset in no segment", in: "ID 0x99999999\n", want: "ID 0x99999999\n"},
	{name: "not known", in: nobodyID + " 0x10\n", want: nobodyID + " 0x10\n"},
	{name: "all zeros", in: strings.Repeat("0", 40) + " 0x10\n",
		want: strings.Repeat("0", 40) + " 0x10\n"},
	{name: "the kernel, from _text", in: kernelID + " 0x11ecbe4\n" + kernelID + "+0x11ecbe4\n",
		want: "do_syscall_64+0x4\ndo_syscall_64+0x4\n"},
	{name: "the kernel, an address as linked",
		in:   "(vmlinux+0x11ecbe4) (BuildId: " + kernelID + ")\n",
		want: "(vmlinux+0x11ecbe4) (BuildId: " + kernelID + ")\n"},
	{name: "no digits", in: "ID 0x\nID +\nID+0x\ncollatz+0x [fixed ID]\n",
		want: "ID 0x\nID +\nID+0x\ncollatz+0x [fixed ID]\n"},
	{name: "too many digits", in: "ID 0x0000000000000114e\nID +0000000000000114e\n",
		want: "ID 0x0000000000000114e\nID +0000000000000114e\n"},
	{name: "as many digits as there can be", in: "ID 0x000000000000114e\n",
		want: exactPlace + "\n"},
	{name: "a module's build ID cut", in: "collatz+0x18/0x48 [fixed 0123456789abcd]\n",
		want: "collatz+0x18/0x48 [fixed 0123456789abcd]\n"},
	{name: "a module's build ID of odd length", in: "collatz+0x18/0x48 [fixed ID1]\n",
		want: "collatz+0x18/0x48 [fixed ID1]\n"},
	{name: "a digest", in: "sha1sum ID  file\n", want: "sha1sum ID  file\n"},
	{name: "a word is glued to it", in: "xID 0x114e ID 0x114eg\n",
		want: "xID 0x114e ID 0x114eg\n"},
}

// TestForms: each form gives its result.
func TestForms(t *testing.T) {
	view := newView(t)
	for _, c := range forms {
		t.Run(c.name, func(t *testing.T) {
			in, want := strings.ReplaceAll(c.in, "ID", fixedID), strings.ReplaceAll(c.want, "ID", fixedID)
			if got, _ := rewrite(t, view, Options{}, in); got != want {
				t.Errorf("%q becomes\n%q and not\n%q", in, got, want)
			}
		})
	}
}

// TestReturnAddresses: the addresses looked up one byte before. In main a line begins at 0x55.
func TestReturnAddresses(t *testing.T) {
	view := newView(t)
	const first, second = fixedID + " 0x1208\n", fixedID + " 0x1208\n"
	got, _ := rewrite(t, view, Options{}, first+second)
	lines := strings.Split(got, "\n")
	if lines[0] == lines[1] {
		t.Errorf("the first frame of a run and the second are the same: %q", lines[0])
	}
	exact, _ := rewrite(t, view, Options{Exact: true}, first+second)
	if want := lines[0] + "\n" + lines[0] + "\n"; exact != want {
		t.Errorf("--exact gives %q and not %q", exact, want)
	}
	apart, _ := rewrite(t, view, Options{}, first+"\n\n"+second)
	if want := lines[0] + "\n\n\n" + lines[0] + "\n"; apart != want {
		t.Errorf("two runs give %q and not %q", apart, want)
	}
	// A frame without a build ID begins a run, too, and it does not go over other lines.
	for before, want := range map[string]string{
		"    7f001234567a\n": lines[1], "@[\n    7f001234567a\n": lines[1],
		"\t401136\n7f001234567a\n": lines[1], "    7f001234567a\nx\n": lines[0],
		"    7f00\n": lines[0], "    7f001234567a x\n": lines[0], "7f001234567a\n": lines[0],
		"x\n7f001234567a\n": lines[0], "    7f001234567a7f001\n": lines[0],
	} {
		if got, _ := rewrite(t, view, Options{}, before+second); got != before+want+"\n" {
			t.Errorf("behind %q: %q", before, got)
		}
	}
	// Kernels print values of registers unchanged, in lines of other kinds too.
	for mark, want := range map[string]string{"RIP: 0010:": lines[0], "pc : ": lines[0],
		"WARNING: CPU: 1 at ": lines[0], "lr : ": lines[1], "": lines[1]} {
		_, source, _ := strings.Cut(want, " ")
		in, module := mark+"main+0x55/0x9d", " [fixed "+fixedID+"]"
		if got, _ := rewrite(t, view, Options{}, in+module); got != in+" "+source+module {
			t.Errorf("%q becomes %q, not with %q", in+module, got, source)
		}
	}
}

// TestNoReturnAddresses: the first byte of a function with padding before it is no return
// address, also where others of its object are.
func TestNoReturnAddresses(t *testing.T) {
	in := strings.ReplaceAll("ID 0x1208\nID 0x1250\nID 0x1208\nID 0x1250\n", "ID", fixedID)
	got, _ := rewrite(t, newView(t), Options{}, in)
	lines := strings.Split(got, "\n")
	if lines[1] != "_fini+0x0" || lines[3] != lines[1] || lines[0] == lines[2] {
		t.Errorf("%q", lines)
	}
}

// TestProgramAddresses: of BPF programs in kernel stack traces, too, the value of a register
// is exact, as is the first instruction. In fold_digits a line begins at 0x13.
func TestProgramAddresses(t *testing.T) {
	view := newView(t)
	for in, line := range map[string]string{
		"RIP: 0010:" + tallyTag + "+0x13/0x49": "18", "pc : " + tallyTag + "+0x13/0x49": "18",
		" ? " + tallyTag + "+0x13/0x49": "12", " " + tallyTag + "+0x14/0x49": "18",
		" " + tallyTag + "+0x0/0x49": "12", tallyTag + "+0x13": "18", "x\n" + tallyTag + "+0x13": "18",
	} {
		want := in + " (/srv/app/src/tally.bpf.c:" + line + ")"
		if got, _ := rewrite(t, view, Options{}, in); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

// TestMarkupAddresses: an element itself marks its address as exact or not; {{{pc}}} and
// frame 0 are. Elements that lack fields stay as they are.
func TestMarkupAddresses(t *testing.T) {
	view := newView(t)
	const head = "{{{module:0:fixed:elf:" + fixedID + "}}}" +
		"{{{mmap:0x7000:0x1000:load:0:rx:0x401000}}}"
	place := func(element string) string {
		t.Helper()
		got, _ := rewrite(t, view, Options{}, head+element)
		return strings.TrimPrefix(got, head)
	}
	exact, back := place("{{{pc:0x7208}}}"), place("{{{bt:1:0x7208}}}")
	if exact == back || !strings.HasPrefix(back, "main+0x55 (") {
		t.Errorf("exact it is %q, else %q", exact, back)
	}
	for element, want := range map[string]string{
		"{{{pc:0x7208:pc}}}": exact, "{{{pc:0x7208:ra}}}": back, "{{{bt:0:0x7208}}}": exact,
		"{{{bt:0:0x7208:ra}}}": back, "{{{bt:1:0x7208:pc}}}": exact, "{{{bt:1:0x7208:ra:x}}}": back,
	} {
		if got := place(element); got != want {
			t.Errorf("%s becomes %q and not %q", element, got, want)
		}
	}
	for _, element := range []string{"{{{}}}", "{{{pc}}}", "{{{bt}}}", "{{{bt:0}}}", "{{{module}}}",
		"{{{module:0:x:elf}}}", "{{{mmap}}}", "{{{mmap:0x7000:0x1000:load:0:rx}}}", "{{{pc:x}}}",
		"{{{data:0x7208:1:2:3:4:5:6:7}}}", "{{{bt:0:0x8000}}}"} {
		if got := place(element); got != element {
			t.Errorf("%s becomes %q", element, got)
		}
	}
}

// TestNumberedFrames: the number of a frame marks it as the first or not, anywhere in a line.
func TestNumberedFrames(t *testing.T) {
	view := newView(t)
	place := func(number string) string {
		t.Helper()
		got, st := rewrite(t, view, Options{}, "[9]"+fixedID+" +1208 "+number+fixedID+" +1208\n")
		if st.Named != 2 {
			t.Errorf("%s: %q", number, got)
		}
		return got[strings.LastIndex(got, "main+"):]
	}
	exact, back := place("[0]"), place("[1]")
	if exact == back || place("[10]") != back || place("[x]") != back || place("") != back ||
		place("[00000]") != back {
		t.Errorf("frame 0 is %q, frame 1 %q", exact, back)
	}
	alone, _ := rewrite(t, view, Options{}, "[1]"+fixedID+" +1208\n")
	if !strings.HasSuffix(alone, back) {
		t.Errorf("a run that begins with frame 1: %q and not %q", alone, back)
	}
}

func TestBuildIDOfKernel(t *testing.T) {
	view := newView(t)
	kernel, _ := buildid.Parse(kernelID)
	const frame = " do_syscall_64+0x71/0x280\n"
	for _, c := range []struct {
		name, in string
		opts     Options
		reasons  []ingest.Reason
	}{
		{name: "not told", in: frame, opts: Options{}, reasons: []ingest.Reason{ingest.NoBuildID}},
		{name: "told by the head", in: head + frame, opts: Options{}},
		{name: "told by the user", in: frame, opts: Options{Kernel: kernel}},
		{name: "another one came", in: head + strings.Replace(head, " "+kernelID, "", 1) + frame,
			opts:    Options{},
			reasons: []ingest.Reason{ingest.NoBuildID}},
		{name: "the user's is of heads without one",
			in: strings.Replace(head, kernelID, nobodyID, 1) +
				strings.Replace(head, " "+kernelID, "", 1) + frame, opts: Options{Kernel: kernel}},
	} {
		out, st := rewrite(t, view, c.opts, c.in)
		if out != c.in { // a kernel's list has no lines
			t.Errorf("%s: %q becomes %q", c.name, c.in, out)
		}
		var got []ingest.Reason
		for _, l := range st.Sorted() {
			got = append(got, l.Reason)
		}
		want := c.reasons
		if want == nil {
			want = []ingest.Reason{ingest.Stripped}
		}
		if len(got) != len(want) || got[0] != want[0] {
			t.Errorf("%s: reasons %v, not %v", c.name, got, want)
		}
	}
}

// TestProbable: a BPF function without its image in the text is marked.
func TestProbable(t *testing.T) {
	view := newView(t)
	for text, want := range map[string]uint64{
		tallyTag + "+0x2d/0x49\n": 1, tallyTag + "+0x2d\n": 1, fixedID + " 0x114e\n": 0,
	} {
		if _, st := rewrite(t, view, Options{}, text); st.Named != 1 || st.Probable != want {
			t.Errorf("%q: %d named, %d probably, not %d", text, st.Named, st.Probable, want)
		}
	}
}

func TestStats(t *testing.T) {
	view := newView(t)
	text := strings.Repeat(fixedID+" 0x114e\n", 3) + strings.Repeat(nobodyID+" 0x10\n", 2) +
		fixedID + " 0x99999999\n" + "bpf_prog_0123456789abcdef_x+0x10/0x20\n" +
		"f+0x1/0x2 [nfs]\n" + "0123456789abcdef 0x10\n"
	_, st := rewrite(t, view, Options{}, text)
	if st.Places != 8 || st.Named != 3 {
		t.Errorf("%d of %d places named, not 3 of 8: what only may be a place is none", st.Named,
			st.Places)
	}
	type row struct {
		object string
		places uint64
		reason ingest.Reason
	}
	var got []row
	for _, l := range st.Sorted() {
		got = append(got, row{l.Object, l.Places, l.Reason})
		if l.Hint() == "" && l.Reason != ingest.OutsideObject {
			t.Errorf("no hint for %v", l)
		}
	}
	want := []row{{object: nobodyID, places: 2, reason: ingest.NotIndexed}, {places: 1,
		reason: ingest.NoBuildID},
		{object: fixedID, places: 1, reason: ingest.OutsideObject},
		{object: "bpf_prog_0123456789abcdef_x", places: 1, reason: ingest.ImageNotCaptured}}
	if len(got) != len(want) {
		t.Fatalf("left %v, not %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("left %v, not %v", got[i], want[i])
		}
	}
}
