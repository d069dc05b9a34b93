package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/decode"
)

// TestMissing covers each reason for missing code.
func TestMissing(t *testing.T) {
	zero := func(fields ...int) func([]byte, binary.ByteOrder) {
		return func(info []byte, o binary.ByteOrder) {
			for _, at := range fields {
				o.PutUint32(info[at:], 0)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*bpfbuild.Program)
		want   string
	}{
		"whole": {change: func(*bpfbuild.Program) {}},
		"kptr_restrict": {change: func(p *bpfbuild.Program) { p.Hide = bpfbuild.Jited },
			want: MissingHidden},
		"kptr_restrict, as our recorder writes it": {change: func(p *bpfbuild.Program) {
			p.Omit = bpfbuild.Jited
		}, want: MissingHidden},
		"without the code": {change: func(p *bpfbuild.Program) { p.Omit = bpfbuild.JITedInsns },
			want: MissingNotRecorded},
		"without the lengths": {change: func(p *bpfbuild.Program) { p.Omit = bpfbuild.JITedFuncLens },
			want: MissingNotRecorded},
		"with hidden lengths": {change: func(p *bpfbuild.Program) { p.Hide = bpfbuild.JITedFuncLens },
			want: MissingHidden},
		"interpreted": {change: func(p *bpfbuild.Program) {
			p.Omit = ^uint64(0)
			p.Change = zero(16, 104, 108, 168)
		}, want: MissingNotJITed},
		"without rights": {change: func(p *bpfbuild.Program) {
			p.Omit = ^uint64(0)
			p.Change = zero(16, 20, 104, 108, 144, 148, 168, 180)
		}, want: MissingRights},
		"no such place": {change: func(p *bpfbuild.Program) {
			p.Change = func(info []byte, o binary.ByteOrder) { o.PutUint64(info[24:], 1<<40) }
		}, want: MissingDamaged},
		"first function too long": {change: func(p *bpfbuild.Program) {
			p.Change = func(info []byte, o binary.ByteOrder) { o.PutUint32(info[16:], 39) }
		}, want: MissingDamaged},
	} {
		for _, big := range []bool{false, true} {
			b := sample()
			c.change(&b)
			p := &decodeBuilt(t, big, b)[0]
			if p.Missing != c.want || (p.Funcs[0].Image == nil) != (c.want != "") {
				t.Errorf("%s: missing %q, image of %d bytes, err %v", name, p.Missing,
					len(p.Funcs[0].Image), p.Err)
			}
			if (p.Err != nil) != (c.want == MissingDamaged) {
				t.Errorf("%s: err %v", name, p.Err)
			}
			if name == "without rights" && len(p.Funcs) != 1 {
				t.Errorf("%s: %d functions", name, len(p.Funcs))
			}
		}
	}
}

// TestNoLines covers each reason for missing lines.
func TestNoLines(t *testing.T) {
	bare := func(p *bpfbuild.Program) {
		for i := range p.Funcs {
			p.Funcs[i].Lines = nil
		}
	}
	for name, c := range map[string]struct {
		change func(p *bpfbuild.Program)
		want   string
	}{
		"without BTF": {change: func(p *bpfbuild.Program) { p.BTFID = 0; bare(p) },
			want: MissingBTF},
		"without line info": {change: bare, want: MissingLineInfo},
		"numbers of 0": {change: func(p *bpfbuild.Program) {
			p.Funcs[1].Lines = []bpfbuild.Line{{}, {At: 4, Source: "x"}}
		}, want: MissingNumbers},
		"left out": {change: func(p *bpfbuild.Program) {
			p.Omit = bpfbuild.LineInfo
		}, want: MissingNotRecorded},
		"addresses left out": {change: func(p *bpfbuild.Program) {
			p.Omit = bpfbuild.JITedLineInfo
		}, want: MissingNotRecorded},
		"starts left out": {change: func(p *bpfbuild.Program) {
			p.Omit = bpfbuild.JITedKSyms
		}, want: MissingNotRecorded},
		"hidden": {change: func(p *bpfbuild.Program) {
			p.Hide = bpfbuild.Jited
		}, want: MissingHidden},
		"hidden addresses": {change: func(p *bpfbuild.Program) {
			p.Hide = bpfbuild.JITedLineInfo
		}, want: MissingHidden},
		"hidden records": {change: func(p *bpfbuild.Program) {
			p.Hide = bpfbuild.LineInfo
		}, want: MissingHidden},
		"hidden count": {change: func(p *bpfbuild.Program) {
			p.Change = func(info []byte, o binary.ByteOrder) { o.PutUint32(info[168:], 0) }
		}, want: MissingHidden},
		"interpreted": {change: func(p *bpfbuild.Program) {
			p.Omit = ^uint64(0)
			p.Change = func(info []byte, o binary.ByteOrder) { o.PutUint32(info[16:], 0) }
		}, want: MissingNotJITed},
		"damaged": {change: func(p *bpfbuild.Program) {
			p.Change = func(info []byte, o binary.ByteOrder) { o.PutUint64(info[152:], 1<<40) }
		}, want: MissingDamaged},
	} {
		b := sample()
		c.change(&b)
		p := &decodeBuilt(t, false, b)[0]
		if got := p.NoLines(min(1, len(p.Funcs)-1)); got != c.want {
			t.Errorf("%s: %q, want %q; lines %+v, err %v", name, got, c.want, p.Funcs[0].Lines,
				p.Err)
		}
	}
	p := &decodeBuilt(t, false, sample())[0]
	if got := p.NoLines(0); got != "" {
		t.Errorf("with lines: %q", got)
	}
	known := &Program{Funcs: make([]Func, 1), Missing: MissingGone}
	if got := known.NoLines(0); got != MissingGone {
		t.Errorf("known by records: %q", got)
	}
}

// TestLinesAtOneAddress: of several records at one address, as of instructions that make no code,
// the last one with a number is the code's.
func TestLinesAtOneAddress(t *testing.T) {
	const file = "a.c"
	for name, c := range map[string]struct {
		lines []bpfbuild.Line
		want  []uint32 // offset and line of each
	}{
		"the last": {lines: []bpfbuild.Line{{Line: 3}, {Line: 4}, {At: 8, Line: 5}, {At: 8, Line: 6}},
			want: []uint32{0, 4, 8, 6}},
		"the compiler's last": {lines: []bpfbuild.Line{{Line: 3}, {At: 8, Line: 5}, {At: 8}, {At: 12}},
			want: []uint32{0, 3, 8, 5}},
		"the compiler's first": {lines: []bpfbuild.Line{{}, {Line: 3}, {At: 8}, {At: 8, Line: 5}},
			want: []uint32{0, 3, 8, 5}},
		"late beginning": {lines: []bpfbuild.Line{{}, {At: 8, Line: 3}, {At: 8, Line: 4},
			{At: 12, Line: 5}}, want: []uint32{0, 4, 12, 5}},
	} {
		b := sample()
		for i := range c.lines {
			c.lines[i].File = file
		}
		b.Funcs[0].Lines = c.lines
		p := &decodeBuilt(t, false, b)[0]
		var got []uint32
		for _, l := range p.Funcs[0].Lines {
			got = append(got, l.Offset, l.Line)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: lines %d, want %d", name, got, c.want)
		}
	}
}

// TestHidden keeps names, tags and the number of functions where kptr_restrict hides addresses; the
// lines cannot be placed then.
func TestHidden(t *testing.T) {
	b := sample()
	b.Hide = bpfbuild.Jited
	p := &decodeBuilt(t, false, b)[0]
	if len(p.Funcs) != 3 || p.Err != nil {
		t.Fatalf("%d functions, %v", len(p.Funcs), p.Err)
	}
	for i := range p.Funcs {
		f := &p.Funcs[i]
		if f.Start != 0 || f.Lines != nil || f.Length != 0 || f.Image != nil {
			t.Errorf("function %d: %+v", i, f)
		}
	}
	if p.Symbol(1) != "bpf_prog_1111111111111111_helper" {
		t.Errorf("function 1 is %s", p.Symbol(1))
	}
}

// TestInfoLen extends a short info with zeros, and ignores the rest of a long one.
func TestInfoLen(t *testing.T) {
	for _, n := range []int{0, 4, 8, 16, 79, 104, 128, 184, 191, 192, 216, 231, 232, 240, 1000} {
		b := sample()
		if b.InfoLen = n; n == 0 {
			b.InfoLen = 1
		}
		p := &decodeBuilt(t, false, b, sample())[0]
		if n >= 8 && (p.ID != 9 || p.Type != 17) {
			t.Errorf("%d bytes: program %d of type %d", n, p.ID, p.Type)
		}
		if n >= 192 && (p.Err != nil || len(p.Funcs) != 3 || len(p.Funcs[0].Lines) != 3) {
			t.Errorf("%d bytes: %d functions, %v", n, len(p.Funcs), p.Err)
		}
		if len(p.Raw) < b.InfoLen {
			t.Errorf("%d bytes: raw of %d", n, len(p.Raw))
		}
	}
}

// TestLies has impossible counts, sizes and addresses: valid parts stay, and the rest is reported.
func TestLies(t *testing.T) {
	put32 := func(at int, v uint32) func([]byte, binary.ByteOrder) {
		return func(info []byte, o binary.ByteOrder) { o.PutUint32(info[at:], v) }
	}
	put64 := func(at int, v uint64) func([]byte, binary.ByteOrder) {
		return func(info []byte, o binary.ByteOrder) { o.PutUint64(info[at:], v) }
	}
	for name, c := range map[string]struct {
		change func([]byte, binary.ByteOrder)
		want   string // in the error
	}{
		"4 G lines": {change: put32(148, ^uint32(0)),
			want: "line_info: 4294967295 records"},
		"4 G functions": {change: put32(104, ^uint32(0)),
			want: "jited_ksyms: 4294967295 records"},
		"4 G tags": {change: put32(180, 1<<31), want: "prog_tags: 2147483648 records"},
		"small line records": {change: put32(172, 8),
			want: "line_info: records of 8 bytes, 16 is the least"},
		"large line records": {change: put32(172, 1<<31), want: "line_info: "},
		"records of 0 bytes": {change: put32(132, 0), want: "func_info: records of 0 bytes"},
		"behind the data": {change: put64(184, 1<<20),
			want: "prog_tags: 3 records of 8 bytes at 0x100000"},
		"overflowing": {change: put64(152, 1<<63-8), want: "line_info: "},
		"fewer addresses": {change: put32(168, 2),
			want: "jited_line_info: 2 addresses for 7 lines"},
		"code cut": {change: put32(16, 50),
			want: "function 1 of 33 bytes ends behind the code"},
	} {
		b := sample()
		b.Change = c.change
		p := &decodeBuilt(t, false, b, sample())[0]
		var where *decode.Error
		if !errors.As(p.Err, &where) || !strings.Contains(p.Err.Error(), c.want) {
			t.Errorf("%s: %v", name, p.Err)
		}
		if p.Name != "a_program_of_so" || len(p.Funcs) != 3 || p.Missing != "" ||
			len(p.Funcs[0].Image) != 40 {
			t.Errorf("%s: %q with %d functions, missing %q", name, p.Name, len(p.Funcs), p.Missing)
		}
	}
}

// TestManyFuncs has more functions than any kernel allows.
func TestManyFuncs(t *testing.T) {
	b := sample()
	for range maxFuncs {
		b.Funcs = append(b.Funcs, bpfbuild.Func{Start: 0x1000, Code: []byte{1}})
	}
	p := &decodeBuilt(t, false, b)[0]
	if len(p.Funcs) != maxFuncs || p.Err == nil || !strings.Contains(p.Err.Error(), "over the limit") {
		t.Errorf("%d functions, %v", len(p.Funcs), p.Err)
	}
	if f := &p.Funcs[1]; f.Name != "helper" || len(f.Lines) != 1 {
		t.Errorf("function 1 is %+v", f)
	}
}

// TestStrayLines leaves out lines at addresses of no function, and accepts lines of functions in
// any order.
func TestStrayLines(t *testing.T) {
	b := sample()
	b.Funcs[0].Lines = append(b.Funcs[0].Lines, bpfbuild.Line{At: 1 << 20, Line: 90},
		bpfbuild.Line{At: 5, Line: 4, File: "x", Source: "y"})
	p := &decodeBuilt(t, false, b)[0]
	if p.Err == nil || !strings.Contains(p.Err.Error(), "1 of 9 records lie in no function") {
		t.Errorf("err %v", p.Err)
	}
	var lines []uint32
	for _, l := range p.Funcs[0].Lines {
		lines = append(lines, l.Offset, l.Line)
	}
	if want := []uint32{0, 3, 5, 4, 11, 5, 20, 7}; !slices.Equal(lines, want) {
		t.Errorf("lines %d, want %d", lines, want)
	}
}

// TestAdjacentLines: the end address of a function is the next function's start.
func TestAdjacentLines(t *testing.T) {
	b := sample()
	first, second := &b.Funcs[0], &b.Funcs[1]
	second.Start = first.Start + uint64(len(first.Code))
	second.Lines = []bpfbuild.Line{{Line: 30, File: "x"}}
	p := &decodeBuilt(t, false, b)[0]
	if l := p.Funcs[1].Lines; p.Err != nil || len(l) != 1 || l[0].Line != 30 ||
		len(p.Funcs[0].Lines) != 3 {
		t.Errorf("lines %+v and %+v, err %v", p.Funcs[0].Lines, l, p.Err)
	}
	// One behind the last function belongs to none.
	b.Funcs[2].Lines = []bpfbuild.Line{{At: uint32(len(b.Funcs[2].Code)), Line: 40, File: "x"}}
	p = &decodeBuilt(t, false, b)[0]
	if p.Err == nil || len(p.Funcs[2].Lines) != 0 {
		t.Errorf("lines %+v, err %v", p.Funcs[2].Lines, p.Err)
	}
}

// TestFuncsByTypes: without addresses, lengths and tags the BTF records have the number
// of functions, and their names.
func TestFuncsByTypes(t *testing.T) {
	b := sample()
	b.Omit = bpfbuild.JITedKSyms | bpfbuild.JITedFuncLens | bpfbuild.ProgTags
	p := &decodeBuilt(t, false, b)[0]
	if len(p.Funcs) != 3 || p.Funcs[2].Name != "other" {
		t.Errorf("functions %+v", p.Funcs)
	}
}

// TestForeignTypes names no function by a type of another kind.
func TestForeignTypes(t *testing.T) {
	b := sample()
	info, blobs := bpfbuild.Sections(false, b)
	other := b
	other.Funcs = b.Funcs[:1]
	_, fewer := bpfbuild.Sections(false, other)
	for name, blobs := range map[string][]byte{"whole": blobs, "fewer types": fewer} {
		btfs, err := DecodeBTFs("test", blobs, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		programs, err := DecodePrograms("test", info, 0, false, btfs)
		if err != nil {
			t.Fatal(err)
		}
		p := &programs[0]
		want := map[string]string{"whole": "helper", "fewer types": "F"}[name]
		if p.Funcs[1].Name != want || (p.Err != nil) != (want == "F") {
			t.Errorf("%s: function 1 is %q, err %v", name, p.Funcs[1].Name, p.Err)
		}
	}
}

// TestTypeBehindLast: the first ID beyond the BTF is no function.
func TestTypeBehindLast(t *testing.T) {
	b := sample()
	info, blobs := bpfbuild.Sections(false, b)
	other := b
	other.Funcs = b.Funcs[:2]
	_, fewer := bpfbuild.Sections(false, other)
	for i, blobs := range [][]byte{blobs, fewer} {
		btfs, err := DecodeBTFs("test", blobs, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		programs, err := DecodePrograms("test", info, 0, false, btfs)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{programs[0].Funcs[1].Name, programs[0].Funcs[2].Name}
		if want := [][]string{{"helper", "other"}, {"helper", "F"}}[i]; !slices.Equal(names, want) ||
			(programs[0].Err != nil) != (i == 1) {
			t.Errorf("functions %q, want %q; err %v", names, want, programs[0].Err)
		}
	}
}

// TestSeveral keeps the programs before a break in the chain of entries.
func TestSeveral(t *testing.T) {
	a, b := sample(), sample()
	b.ID, b.BTFID = 3, 5
	info, blobs := bpfbuild.Sections(false, a, b)
	cut := info[:len(info)-1]
	btfs, err := DecodeBTFs("test", blobs[:len(blobs)-1], 0, false)
	if err == nil || len(btfs) != 1 || !strings.Contains(err.Error(), "1 of 2 BTF blobs") {
		t.Errorf("%d BTF blobs, %v", len(btfs), err)
	}
	programs, err := DecodePrograms("test", cut, 0x100, false, btfs)
	if err == nil || len(programs) != 1 || programs[0].ID != 9 ||
		!strings.Contains(err.Error(), "1 of 2 programs: test: offset 0x") {
		t.Errorf("%d programs, %v", len(programs), err)
	}
	if !bytes.Equal(programs[0].Raw, info[4:4+len(programs[0].Raw)]) {
		t.Error("the raw entry is another")
	}
	damaged := bytes.Clone(blobs)
	damaged[12] ^= 0xff // magic of the first
	if btfs, err = DecodeBTFs("test", damaged, 0, false); err == nil || len(btfs) != 1 ||
		btfs[5] == nil {
		t.Errorf("with one damaged: %d BTF blobs, %v", len(btfs), err)
	}
}

// TestTruncation decodes every prefix of real sections: complete programs or an error with its
// position.
func TestTruncation(t *testing.T) {
	info, blobs := recorded(t, "bpf-before")
	whole, err := DecodeBTFs("test", blobs, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	for n := range info {
		programs, err := DecodePrograms("test", info[:n:n], 0, false, whole)
		var where *decode.Error
		if !errors.As(err, &where) || where.Offset > int64(n) || len(programs) >= 3 {
			t.Fatalf("%d bytes: %d programs, %v", n, len(programs), err)
		}
	}
	for n := range blobs {
		if btfs, err := DecodeBTFs("test", blobs[:n:n], 0, false); err == nil || len(btfs) >= 2 {
			t.Fatalf("%d bytes: %d BTF blobs, %v", n, len(btfs), err)
		}
	}
}

// TestManyEntries: tiny entries, and programs of many functions, use no more memory than the limits
// permit; entries before the limit stay.
func TestManyEntries(t *testing.T) {
	section := func(n, fields int) []byte {
		b := make([]byte, 4+4*n*fields)
		binary.LittleEndian.PutUint32(b, uint32(n))
		return b
	}
	p, err := DecodePrograms("test", section(maxSectionFuncs+100, 4), 0, false, nil)
	if len(p) != maxSectionFuncs || err == nil ||
		!strings.Contains(err.Error(), "over the limit of 262144 functions") {
		t.Errorf("%d programs, %v", len(p), err)
	}
	wide := bpfbuild.Program{ID: 1, Tag: tagOf(1), Funcs: make([]bpfbuild.Func, 5000)}
	info, _ := bpfbuild.Sections(false, slices.Repeat([]bpfbuild.Program{wide}, 70)...)
	p, err = DecodePrograms("test", info, 0, false, nil)
	if len(p) != maxSectionFuncs/maxFuncs || err == nil || p[0].Err == nil ||
		len(p[0].Funcs) != maxFuncs {
		t.Errorf("%d wide programs, %v, %v", len(p), err, p[0].Err)
	}
	btfs, err := DecodeBTFs("test", section(maxSectionBTFs+100, 2), 0, false)
	if len(btfs) != 0 || err == nil || !strings.Contains(err.Error(), "65536 BTF blobs") {
		t.Errorf("%d blobs, %v", len(btfs), err)
	}
}
