package gopclntab

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/addr"
)

// release is a format of the tables in a range of Go releases.
type release struct {
	name    string
	version layoutVersion
	wide    bool // count of funcdata is an int32
	form    form
	trees   bool
}

var releases = []release{
	{name: "go1.2", version: go12, wide: true, form: form{}},
	{name: "go1.9", version: go12, wide: true, form: form{2, 1, callGo9}, trees: true},
	{name: "go1.12", version: go12, form: form{2, 1, callGo12}, trees: true},
	{name: "go1.13", version: go12, form: form{4, 2, callGo12}, trees: true},
	{name: "go1.16", version: go116, form: form{3, 2, callGo12}, trees: true},
	{name: "go1.18", version: go118, form: form{3, 2, callGo12}, trees: true},
	{name: "go1.20", version: go120, form: form{3, 2, callGo20}, trees: true},
}

// target is a machine.
type target struct {
	ptr int
	big bool
}

var targets = []target{{ptr: 8}, {ptr: 8, big: true}, {ptr: 4}, {ptr: 4, big: true}}

func (t target) String() string { return fmt.Sprintf("%d-bit/big=%v", t.ptr*8, t.big) }

func (t target) order() binary.AppendByteOrder {
	if t.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// fn declares a function. Spans are given by their lengths.
type fn struct {
	name  string
	start uint32 // line
	size  uint64
	pad   uint64 // to the next
	code  []code
	calls []inlinedCall
}

// code is a stretch of code of an inlined call (1 for the first, 0 for none).
type code struct {
	size uint64
	file string
	line int32
	call int
}

type inlinedCall struct {
	name     string
	start    uint32
	parent   int32 // index, or -1
	file     string
	line     int32
	parentPC uint32
}

// Addresses of built tables.
const (
	tableAddr = 0x600000
	textAddr  = 0x401000
	treeAddr  = 0x700000
	quantum   = 1
)

// built is an encoded table.
type built struct {
	data, trees []byte
}

// input returns the Input of New.
func (b built) input() Input {
	return Input{
		Name: "test", Offset: 0x100, Data: b.data, Addr: tableAddr, Text: textAddr,
		FuncData: []addr.Addr{0x12345, treeAddr},
		Memory: func(a addr.Addr, limit uint64) []byte {
			if off := uint64(a - treeAddr); off < uint64(len(b.trees)) {
				return b.trees[off:min(uint64(len(b.trees)), off+limit)]
			}
			return nil
		},
	}
}

// builder encodes a table.
type builder struct {
	r     release
	t     target
	o     binary.AppendByteOrder
	names []byte
	pctab []byte
	trees []byte
	files []string
	at    map[string]uint32 // of names
}

func build(r release, t target, funcs ...fn) built {
	b := &builder{r: r, t: t, o: t.order(), pctab: []byte{0}, at: map[string]uint32{}}
	b.trees = []byte("tree")
	if r.version == go12 {
		return b.go12(funcs)
	}
	return b.go116(funcs)
}

func (b *builder) word(d []byte, v uint64) []byte {
	if b.t.ptr == 4 {
		return b.o.AppendUint32(d, uint32(v))
	}
	return b.o.AppendUint64(d, v)
}

func (b *builder) u32(d []byte, v uint32) []byte { return b.o.AppendUint32(d, v) }

func (b *builder) header() []byte {
	return append(b.u32(nil, magics[b.r.version]), 0, 0, quantum, byte(b.t.ptr))
}

// name returns the offset of a name from base.
func (b *builder) name(s string) uint32 {
	at, ok := b.at[s]
	if !ok {
		at = uint32(len(b.names))
		b.names = append(b.names, s+"\x00"...)
		b.at[s] = at
	}
	return at
}

// file returns the number of a file.
func (b *builder) file(name string) int32 {
	if name == "" {
		return -1
	}
	i := slices.Index(b.files, name)
	if i < 0 {
		i = len(b.files)
		b.files = append(b.files, name)
	}
	return int32(i)
}

// stream encodes a table of values by address and returns its offset in pctab.
func (b *builder) stream(f fn, value func(c code) int32) uint32 {
	at := len(b.pctab)
	last, first := int32(-1), true
	for i := 0; i < len(f.code); {
		v, size := value(f.code[i]), uint64(0)
		for ; i < len(f.code) && value(f.code[i]) == v; i++ {
			size += f.code[i].size
		}
		delta := v - last
		b.pctab = binary.AppendUvarint(b.pctab, uint64(uint32(delta<<1^delta>>31)))
		b.pctab = binary.AppendUvarint(b.pctab, size/quantum)
		last, first = v, false
	}
	if first {
		return 0
	}
	b.pctab = append(b.pctab, 0)
	return uint32(at)
}

// tree encodes an inline tree and returns its offset.
func (b *builder) tree(f fn, name func(string) uint32, file func(string) int32) uint64 {
	for len(b.trees)%4 != 0 {
		b.trees = append(b.trees, 0)
	}
	at := uint64(len(b.trees))
	for _, c := range f.calls {
		d := b.trees
		switch b.r.form.layout {
		case callGo9:
			d = b.u32(d, uint32(c.parent))
		case callGo12:
			d = b.o.AppendUint16(d, uint16(c.parent))
			d = append(d, 7, 0)
		case callGo20:
			d = append(d, 7, 0, 0, 0)
		}
		if b.r.form.layout != callGo20 {
			d = b.u32(d, uint32(file(c.file)))
			d = b.u32(d, uint32(c.line))
		}
		d = b.u32(d, name(c.name))
		if b.r.form.layout != callGo9 {
			d = b.u32(d, c.parentPC)
		}
		if b.r.form.layout == callGo20 {
			d = b.u32(d, c.start)
		}
		b.trees = d
	}
	return at
}

// funcStruct encodes a _func; at is its offset in its part of the table.
func (b *builder) funcStruct(f fn, entry uint64, at int, base uint32,
	name func(string) uint32, file func(string) int32) []byte {
	var d []byte
	if b.r.version >= go118 {
		d = b.u32(d, uint32(entry-textAddr))
	} else {
		d = b.word(d, entry)
	}
	place := func(at uint32) uint32 {
		if at == 0 {
			return 0
		}
		return base + at
	}
	d = b.u32(d, name(f.name))
	d = append(d, make([]byte, 12)...) // args, deferreturn, pcsp
	d = b.u32(d, place(b.stream(f, func(c code) int32 { return file(c.file) })))
	d = b.u32(d, place(b.stream(f, func(c code) int32 { return c.line })))
	npcdata, nfuncdata := 0, 0
	if len(f.calls) > 0 && b.r.trees {
		npcdata, nfuncdata = int(b.r.form.pcdata)+1, int(b.r.form.funcdata)+1
	} else if !b.r.wide {
		nfuncdata = 2
	}
	d = b.u32(d, uint32(npcdata))
	if b.r.version >= go116 {
		d = b.u32(d, 0) // cuOffset
	}
	if b.r.version >= go120 {
		d = b.u32(d, f.start)
	}
	if b.r.wide {
		d = b.u32(d, uint32(nfuncdata))
	} else {
		d = append(d, 3, 0, 0, byte(nfuncdata))
	}
	for i := range npcdata {
		v := uint32(0)
		if i == int(b.r.form.pcdata) {
			v = place(b.stream(f, func(c code) int32 { return int32(c.call - 1) }))
		}
		d = b.u32(d, v)
	}
	for b.r.version < go118 && (at+len(d))%b.t.ptr != 0 {
		d = append(d, 0)
	}
	for i := range nfuncdata {
		tree := ^uint64(0)
		if npcdata > 0 && i == int(b.r.form.funcdata) {
			tree = b.tree(f, name, file)
		}
		if b.r.version >= go118 {
			d = b.u32(d, uint32(tree))
		} else {
			if tree++; tree != 0 {
				tree += treeAddr - 1
			}
			d = b.word(d, tree)
		}
	}
	for len(d)%8 != 0 {
		d = append(d, 0)
	}
	return d
}

// go12 lays out: header, functab, place of the file table, structs, pctab, names, file table.
func (b *builder) go12(funcs []fn) built {
	tab := 8 + b.t.ptr + (2*len(funcs)+1)*b.t.ptr + 4
	tab += -tab & 15
	// Names and pctab have fixed offsets that cannot collide; a first pass computes sizes.
	const names, pctab = 0x400, 0x480
	name := func(s string) uint32 { return names + b.name(s) }
	file := func(s string) int32 { return b.file(s) + 1 }
	var structs []byte
	head := b.word(b.header(), uint64(len(funcs)))
	pc := uint64(textAddr)
	for _, f := range funcs {
		head = b.word(b.word(head, pc), uint64(tab+len(structs)))
		structs = append(structs, b.funcStruct(f, pc, tab+len(structs), pctab, name, file)...)
		pc += f.size + f.pad
	}
	head = b.word(head, pc)
	strings := make([]uint32, len(b.files))
	for i, f := range b.files {
		strings[i] = names + b.name(f)
	}
	fileTab := pctab + len(b.pctab)
	fileTab += -fileTab & 3
	d := b.u32(head, uint32(fileTab))
	d = append(grow(d, tab), structs...)
	if len(d) > names || len(b.names) > pctab-names {
		panic("table is too large")
	}
	d = append(grow(d, names), b.names...)
	d = append(grow(d, pctab), b.pctab...)
	d = b.u32(grow(d, fileTab), uint32(len(b.files)+1))
	for _, s := range strings {
		d = b.u32(d, s)
	}
	return built{d, b.trees}
}

func grow(d []byte, n int) []byte { return append(d, make([]byte, n-len(d))...) }

// go116 lays out: header, names, cutab, filetab, pctab, functab with structs.
func (b *builder) go116(funcs []fn) built {
	field := b.t.ptr
	if b.r.version >= go118 {
		field = 4
	}
	entry := func(d []byte, v uint64) []byte {
		if field == 4 {
			return b.u32(d, uint32(v))
		}
		return b.word(d, v)
	}
	tab := (2*len(funcs) + 1) * field
	tab += -tab & 7
	var functab, structs []byte
	pc, text := uint64(textAddr), uint64(0)
	if b.r.version >= go118 {
		text = textAddr
	}
	for _, f := range funcs {
		functab = entry(entry(functab, pc-text), uint64(tab+len(structs)))
		structs = append(structs, b.funcStruct(f, pc, len(structs), 0, b.name, b.file)...)
		pc += f.size + f.pad
	}
	functab = append(grow(entry(functab, pc-text), tab), structs...)
	var cutab, paths []byte
	for _, f := range b.files {
		cutab = b.u32(cutab, uint32(len(paths)))
		paths = append(paths, f+"\x00"...)
	}
	d := b.word(b.header(), uint64(len(funcs)))
	d = b.word(d, uint64(len(b.files)))
	at := 8 + 7*b.t.ptr
	if b.r.version >= go118 {
		d = b.word(d, 0)
		at += b.t.ptr
	}
	parts := [][]byte{b.names, cutab, paths, b.pctab, functab}
	var body []byte
	for _, p := range parts {
		for (at+len(body))%8 != 0 {
			body = append(body, 0)
		}
		d = b.word(d, uint64(at+len(body)))
		body = append(body, p...)
	}
	return built{append(d, body...), b.trees}
}

// show prints all functions of a table.
func show(t testing.TB, tab *Table) string {
	t.Helper()
	var out strings.Builder
	file := func(n uint32) string {
		if n == NoFile {
			return "?"
		}
		return string(tab.File(n))
	}
	lost, err := tab.Functions(func(f *Function) bool {
		fmt.Fprintf(&out, "%s %x-%x %s:%d\n", f.Name, uint64(f.Start), uint64(f.End),
			file(f.File), f.StartLine)
		for _, c := range f.Inlines {
			fmt.Fprintf(&out, "%*s%s %s:%d at %s:%d, parent %d, depth %d:", 2*int(c.Depth), "",
				c.Name, file(c.File), c.StartLine, file(c.CallFile), c.CallLine, c.Parent, c.Depth)
			for _, r := range c.Ranges {
				fmt.Fprintf(&out, " %x-%x", uint64(r.Start), uint64(r.End))
			}
			out.WriteByte('\n')
		}
		for _, l := range f.Lines {
			fmt.Fprintf(&out, "  %x %s:%d\n", uint64(l.Addr), file(l.File), l.Line)
		}
		return true
	})
	if lost != 0 || err != nil {
		fmt.Fprintf(&out, "lost %d: %v\n", lost, err)
	}
	return out.String()
}
