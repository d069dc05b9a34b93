package dwarf

import (
	stddwarf "debug/dwarf"
	stdelf "debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
)

// loadStd reads the DWARF sections of a file with the standard library.
func loadStd(t testing.TB, path string) *Data {
	t.Helper()
	f, err := stdelf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return New(stdSections(t, f, ""), Options{Name: path, Text: stdText(f)})
}

func stdText(f *stdelf.File) []addr.Range {
	var text []addr.Range
	for _, s := range f.Sections {
		if s.Flags&stdelf.SHF_EXECINSTR != 0 && s.Size > 0 {
			text = append(text, addr.Range{
				Start: addr.Addr(s.Addr), End: addr.Addr(s.Addr + s.Size),
			})
		}
	}
	return text
}

func stdSections(t testing.TB, f *stdelf.File, suffix string) Sections {
	t.Helper()
	get := func(name string) []byte {
		s := f.Section(name + suffix)
		if s == nil {
			return nil
		}
		b, err := s.Data()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return b
	}
	return Sections{
		Info: get(".debug_info"), Abbrev: get(".debug_abbrev"), Line: get(".debug_line"),
		LineStr: get(".debug_line_str"), Str: get(".debug_str"),
		StrOffsets: get(".debug_str_offsets"), Addr: get(".debug_addr"),
		Ranges: get(".debug_ranges"), RngLists: get(".debug_rnglists"),
		BigEndian: f.ByteOrder.String() == "BigEndian",
	}
}

// stdFunc is a function as debug/dwarf sees it, in a form that can be compared.
type stdFunc struct {
	Name    string
	Ranges  string
	Inlines []string // pre-order: depth, name, ranges, call site
}

func fmtRanges(rs [][2]uint64, alive func(a, b uint64) bool) string {
	var s string
	for _, r := range rs {
		if alive(r[0], r[1]) {
			s += fmt.Sprintf("[%x,%x)", r[0], r[1])
		}
	}
	return s
}

// stdNames resolves names as the specification has it, over any unit.
func stdName(t testing.TB, d *stddwarf.Data, e *stddwarf.Entry, scopes *stdScopes) string {
	name := ""
	for range 10 {
		for _, at := range []stddwarf.Attr{stddwarf.AttrLinkageName, atMIPSLinkageName} {
			if s, ok := e.Val(at).(string); ok {
				return s
			}
		}
		if s, ok := e.Val(stddwarf.AttrName).(string); ok && name == "" {
			name = s
		}
		off, ok := e.Val(stddwarf.AttrAbstractOrigin).(stddwarf.Offset)
		if !ok {
			off, ok = e.Val(stddwarf.AttrSpecification).(stddwarf.Offset)
		}
		if !ok {
			if name == "" || isOutlined([]byte(name)) {
				return name
			}
			return scopes.of(t, e.Offset, strings.HasPrefix(name, "operator()")) + name
		}
		r := d.Reader()
		r.Seek(off)
		var err error
		if e, err = r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// stdWalk lists the functions with code of all units.
func stdWalk(t testing.TB, d *stddwarf.Data, alive func(a, b uint64) bool) []stdFunc {
	var out []stdFunc
	type level struct{ fn, depth int }
	stack := []level{{fn: -1, depth: 0}}
	scopes := newStdScopes(t, d)
	r := d.Reader()
	for {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return out
		}
		if e.Tag == 0 {
			stack = stack[:len(stack)-1]
			continue
		}
		if lang, ok := e.Val(stddwarf.AttrLanguage).(int64); ok {
			scopes.sep = separatorOf(uint16(lang))
		}
		top := stack[len(stack)-1]
		child := top
		if e.Tag == stddwarf.TagSubprogram || e.Tag == stddwarf.TagInlinedSubroutine {
			rs, err := d.Ranges(e)
			if err != nil {
				t.Fatal(err)
			}
			code := fmtRanges(rs, alive)
			switch {
			case e.Tag == stddwarf.TagSubprogram && code != "":
				child = level{len(out), 0}
				out = append(out, stdFunc{Name: stdName(t, d, e, scopes), Ranges: code})
			case e.Tag == stddwarf.TagSubprogram:
				child = level{-1, 0}
			case top.fn >= 0:
				line, _ := e.Val(stddwarf.AttrCallLine).(int64)
				out[top.fn].Inlines = append(out[top.fn].Inlines,
					fmt.Sprintf("%d %s %s line %d", top.depth, stdName(t, d, e, scopes), code, line))
				child.depth++
			}
		}
		if e.Children {
			stack = append(stack, child)
		}
	}
}

// ourWalk lists the same of our reader.
func ourWalk(t testing.TB, d *Data, workers int) []stdFunc {
	var out []stdFunc
	name := func(u *Unit, sub int32) string {
		if sub == NoSub {
			return ""
		}
		if s := u.Subs[sub]; s.Linkage != nil {
			return string(s.Linkage)
		}
		return string(u.Subs[sub].Name)
	}
	text := func(rs []addr.Range) string {
		var s string
		for _, r := range rs {
			s += fmt.Sprintf("[%x,%x)", r.Start, r.End)
		}
		return s
	}
	err := d.Walk(t.Context(), workers, func(u *Unit) error {
		for _, p := range u.Problems {
			t.Errorf("%s: %v", d.opts.Name, p)
		}
		for _, f := range u.Functions {
			sf := stdFunc{Name: name(u, f.Sub), Ranges: text(f.Ranges)}
			for _, in := range f.Inlines {
				sf.Inlines = append(sf.Inlines, fmt.Sprintf("%d %s %s line %d",
					in.Depth, name(u, in.Sub), text(in.Ranges), in.CallLine))
			}
			out = append(out, sf)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// compareWithStd holds our reader against debug/dwarf over a whole file. Inlined calls without code
// and without calls in them are the one thing that we leave out.
func compareWithStd(t *testing.T, path string) {
	t.Helper()
	f, err := stdelf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sd, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	d := loadStd(t, path)
	tx := text{ranges: d.opts.Text, last: 1<<64 - 1}
	want := stdWalk(t, sd, tx.alive)
	for i := range want {
		want[i].Inlines = dropEmpty(want[i].Inlines)
	}
	got := ourWalk(t, d, 2)
	if len(want) == 0 {
		t.Fatalf("%s: debug/dwarf finds no function", path)
	}
	diff := 0
	for i := range max(len(got), len(want)) {
		var g, w stdFunc
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if !reflect.DeepEqual(g, w) {
			t.Errorf("%s: function %d:\n got %q\nwant %q", path, i, g, w)
			if diff++; diff > 5 {
				t.Fatalf("%d functions, want %d", len(got), len(want))
			}
		}
	}
	inlines := 0
	for _, f := range want {
		inlines += len(f.Inlines)
	}
	t.Logf("%s: %d functions, %d inlined calls", path, len(want), inlines)
}

// dropEmpty removes calls without ranges that contain no call with ranges.
func dropEmpty(in []string) []string {
	var out []string
	for i, s := range in {
		var depth, d int
		fmt.Sscanf(s, "%d", &depth)
		keep := strings.Contains(s, " [")
		for _, c := range in[i+1:] {
			fmt.Sscanf(c, "%d", &d)
			if d <= depth || keep {
				break
			}
			keep = strings.Contains(c, " [")
		}
		if keep {
			out = append(out, s)
		}
	}
	return out
}

// goBinary builds a Go program with DWARF into a directory of the test.
func goBinary(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	src := filepath.Join(dir, "main.go")
	const prog = "package main\nimport \"fmt\"\nfunc main() { fmt.Println(len(\"x\")) }\n"
	must.Write(t, src, []byte(prog))
	out := filepath.Join(dir, "prog")
	cmd := exec.Command("go", "build", "-o", out, src)
	cmd.Env = append(os.Environ(), "GO111MODULE=off", "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	return out
}

func TestGoProgramAgreesWithStd(t *testing.T) { compareWithStd(t, goBinary(t)) }

func TestFileAgreesWithStd(t *testing.T) {
	path := os.Getenv("SYMBOLIZE_DWARF_FILE")
	if path == "" {
		t.Skip("SYMBOLIZE_DWARF_FILE names no file to compare")
	}
	compareWithStd(t, path)
}

func covers(rs []addr.Range, a uint64) bool {
	for _, r := range rs {
		if r.Contains(addr.Addr(a)) {
			return true
		}
	}
	return false
}

// stdRows lists the rows of all units by the standard library in our form: of rows at
// one address the last, sequences that end, no empty rows.
func stdRows(t testing.TB, sd *stddwarf.Data) []string {
	t.Helper()
	var out []string
	for r := sd.Reader(); ; r.SkipChildren() {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return out
		}
		lr, err := sd.LineReader(e)
		if err != nil {
			t.Fatal(err)
		}
		var rows []stddwarf.LineEntry
		for lr != nil {
			var row stddwarf.LineEntry
			if err := lr.Next(&row); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if n := len(rows); n > 0 && rows[n-1].Address == row.Address {
				rows = rows[:n-1]
			}
			if rows = append(rows, row); !row.EndSequence {
				continue
			}
			for i, row := range rows[:len(rows)-1] {
				out = append(out, fmt.Sprintf("%x-%x %s:%d:%d.%d", row.Address, rows[i+1].Address,
					filepath.Clean(row.File.Name), row.Line, row.Column, row.Discriminator))
			}
			rows = rows[:0]
		}
	}
}

func ourRows(t testing.TB, d *Data) []string {
	t.Helper()
	var out []string
	err := d.Walk(t.Context(), 2, func(u *Unit) error {
		for _, s := range u.Sequences {
			for i, row := range s.Rows {
				end := s.End
				if i+1 < len(s.Rows) {
					end = s.Rows[i+1].Addr
				}
				name := "?"
				if row.File != NoFile {
					name = string(AppendPath(nil, u.Files[row.File]))
				}
				out = append(out, fmt.Sprintf("%x-%x %s:%d:%d.%d", row.Addr, end, name, row.Line,
					row.Column, row.Discriminator))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sameRow compares rows. debug/dwarf does not join relative directories with the
// unit's: its path is an end of ours.
func sameRow(got, want string) bool {
	at, path, _ := strings.Cut(got, " ")
	wantAt, wantPath, _ := strings.Cut(want, " ")
	for strings.HasPrefix(wantPath, "../") {
		wantPath = wantPath[3:]
	}
	return at == wantAt && strings.HasSuffix("/"+path, "/"+strings.TrimPrefix(wantPath, "/"))
}

func TestRowsAgreeWithStd(t *testing.T) {
	path := os.Getenv("SYMBOLIZE_DWARF_FILE")
	if path == "" {
		path = goBinary(t)
	}
	f, err := stdelf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sd, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	d := loadStd(t, path)
	got, want := ourRows(t, d), stdRows(t, sd)
	diff := 0
	for i := range max(len(got), len(want)) {
		g, w := "", ""
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if !sameRow(g, w) {
			if diff++; diff < 6 {
				t.Errorf("row %d: got %s, want %s", i, g, w)
			}
		}
	}
	t.Logf("%d rows, want %d, %d differ", len(got), len(want), diff)
}
