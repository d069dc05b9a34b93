package reporter

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/object/bpf"
)

// piecesOf returns the pieces that the kernel copier sends for a built program.
func piecesOf(p bpfbuild.Program) (out [][]byte) {
	o := binary.NativeEndian
	arrays := arraysOf(p)
	send := func(kind, index uint32, start, tag uint64, data []byte) {
		for at := 0; at < len(data) || at == 0; at += pieceData {
			part := data[at:min(at+pieceData, len(data))]
			b := make([]byte, pieceSize)
			o.PutUint32(b, kind)
			o.PutUint32(b[4:], p.ID)
			o.PutUint32(b[8:], index)
			o.PutUint32(b[12:], uint32(len(part)))
			o.PutUint64(b[16:], uint64(at))
			o.PutUint64(b[24:], uint64(len(data)))
			o.PutUint64(b[32:], start)
			o.PutUint64(b[40:], tag)
			copy(b[pieceHead:], part)
			out = append(out, b)
		}
	}
	head := make([]byte, headSize)
	o.PutUint32(head[headType:], p.Type)
	copy(head[headTag:], p.Tag[:])
	o.PutUint32(head[headInsns:], 43)
	o.PutUint32(head[headID:], p.ID)
	o.PutUint64(head[headLoadTime:], p.LoadTime)
	o.PutUint32(head[headUID:], p.UID)
	o.PutUint32(head[headFuncs:], uint32(len(p.Funcs)))
	o.PutUint32(head[headBTFID:], p.BTFID)
	copy(head[headName:headName+16], p.Name)
	send(pieceProgram, 0, 0, 0, head)
	for i := range p.Funcs {
		f := &p.Funcs[i]
		send(pieceImage, uint32(i), f.Start, o.Uint64(f.Tag[:]), f.Code)
	}
	send(pieceFuncInfo, 0, 0, 0, arrays[bpf.ArrayFuncInfo])
	send(pieceLineInfo, 0, 0, 0, arrays[bpf.ArrayLineInfo])
	send(pieceJITedLines, 0, 0, 0, arrays[bpf.ArrayJITedLineInfo])
	send(pieceBTF, 0, 0, 0, bpfbuild.BTF(bigEndian, &p))
	send(pieceEnd, 0, 0, 0, nil)
	for i := 16; i < 32; i++ { // old content of the ring
		out[len(out)-1][i] = 0xff
	}
	return out
}

// testProgram is a program of two functions with lines and BTF, of its own ids.
func testProgram(id uint32) bpfbuild.Program {
	line := func(n uint32) []bpfbuild.Line {
		return []bpfbuild.Line{{Line: n, File: "x.bpf.c", Source: "{"}}
	}
	b := byte(id)
	return bpfbuild.Program{Type: 17, ID: id, BTFID: 1000 + id, Tag: [8]byte{b, 1}, Name: "on_enter",
		LoadTime: 77, UID: 5, Funcs: []bpfbuild.Func{
			{Name: "on_enter", Tag: [8]byte{b, 2}, Start: 0xffffffffc0000000 + uint64(id)<<16,
				Code: bytes.Repeat([]byte{b}, pieceData+40), Lines: line(10)},
			{Name: "inner", Tag: [8]byte{b, 3}, Start: 0xffffffffc0008000 + uint64(id)<<16,
				Code: bytes.Repeat([]byte{b + 1}, 24), Lines: line(20)},
		}}
}

// arraysOf returns the arrays of a built program that are sent as they are.
func arraysOf(p bpfbuild.Program) (out [bpf.NumArrays][]byte) {
	const head = 4 + 16 // number of entries, head of the entry
	section, _ := bpfbuild.Sections(bigEndian, p)
	o := binary.NativeEndian
	info := section[head:]
	data := info[o.Uint32(section[4:]):]
	for _, a := range []struct{ index, count, pointer, size int }{
		{index: bpf.ArrayFuncInfo, count: 144, pointer: 136, size: 8},
		{index: bpf.ArrayLineInfo, count: 148, pointer: 152, size: 16},
		{index: bpf.ArrayJITedLineInfo, count: 168, pointer: 160, size: 8},
	} {
		size := uint64(o.Uint32(info[a.count:])) * uint64(a.size)
		out[a.index] = data[o.Uint64(info[a.pointer:]):][:size]
	}
	return out
}

// decode decodes copies.
func decode(t *testing.T, list []*Copy) []bpf.Program {
	t.Helper()
	o := binary.NativeEndian
	slices.SortFunc(list, func(a, b *Copy) int { return int(a.ID) - int(b.ID) })
	infos, blobs := o.AppendUint32(nil, uint32(len(list))), []byte(nil)
	n := uint32(0)
	for _, c := range list {
		infos = bpf.AppendProgram(infos, c.Program)
		if len(c.BTF) > 0 {
			blobs = bpf.AppendBTF(blobs, c.BTFID, c.BTF)
			n++
		}
	}
	return decodeSections(t, infos, append(o.AppendUint32(nil, n), blobs...))
}

func decodeSections(t *testing.T, infos, blobs []byte) []bpf.Program {
	t.Helper()
	btfs, err := bpf.DecodeBTFs("btf", blobs, 0, bigEndian)
	if err != nil {
		t.Fatal(err)
	}
	out, err := bpf.DecodePrograms("info", infos, 0, bigEndian, btfs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// collector keeps the copies that pieces make.
type collector struct {
	Pieces
	whole []*Copy
	lost  int
}

func (c *collector) add(piece []byte) {
	x, lost := c.Add(piece)
	if x != nil {
		c.whole = append(c.whole, x)
	}
	if lost {
		c.lost++
	}
}

// withoutRaw removes the fields that bpf(2) returns and a copy lacks.
func withoutRaw(list []bpf.Program) []bpf.Program {
	for i := range list {
		list[i].Raw, list[i].BTF = nil, nil
	}
	return list
}

// TestPieces: the pieces of two programs, one after the other or mixed, make the record that
// bpf(2) would return.
func TestPieces(t *testing.T) {
	a, b := piecesOf(testProgram(4)), piecesOf(testProgram(5))
	var mixed [][]byte
	for i := range max(len(a), len(b)) {
		for _, list := range [][][]byte{a, b} {
			if i < len(list) {
				mixed = append(mixed, list[i])
			}
		}
	}
	infos, blobs := bpfbuild.Sections(bigEndian, testProgram(4), testProgram(5))
	want := withoutRaw(decodeSections(t, infos, blobs))
	for name, list := range map[string][][]byte{"in turn": slices.Concat(a, b), "mixed": mixed} {
		var c collector
		for _, piece := range list {
			c.add(piece)
		}
		if c.Pending() != 0 || c.bytes != 0 || c.lost != 0 {
			t.Errorf("%s: %d programs with %d bytes are left; lost %d", name, c.Pending(), c.bytes,
				c.lost)
		}
		if got := withoutRaw(decode(t, c.whole)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

// TestPiecesDamaged: a program with a missing piece is incomplete or lacks its data; truncated
// pieces are skipped.
func TestPiecesDamaged(t *testing.T) {
	all := piecesOf(testProgram(4))
	const second = 3 // code of the second function; that of the first are two
	for without := range all {
		want := 0
		if without > second && without < len(all)-1 {
			want = 1 // a kernel may lack lines or BTF
		}
		c := collector{}
		for i, piece := range all {
			if i != without {
				c.add(piece)
			}
		}
		if got := len(c.whole); got != want {
			t.Errorf("without piece %d: %d programs, want %d", without, got, want)
		}
	}
	c := collector{}
	for n := range pieceSize {
		c.add(all[0][:n])
	}
	if c.Pending() != 0 {
		t.Error("a program began with a piece that is not whole")
	}
	skip := bytes.Clone(all[3]) // of the second function: one that skips a number
	binary.NativeEndian.PutUint32(skip[8:], 7)
	unknown := bytes.Clone(all[3])
	binary.NativeEndian.PutUint32(unknown, 99)
	long := bytes.Clone(all[1])
	binary.NativeEndian.PutUint32(long[12:], 1<<31)
	for _, piece := range [][]byte{all[0], unknown, long, skip, all[len(all)-1]} {
		c.add(piece)
	}
	if len(c.whole) != 0 || c.lost != 1 {
		t.Errorf("%d programs, lost %v", len(c.whole), c.lost)
	}
}

// TestPiecesBound: programs that never complete occupy at most maxCopying, and later complete ones
// are not kept either meanwhile.
func TestPiecesBound(t *testing.T) {
	c := collector{}
	c.bytes = maxCopying - pieceData
	for _, piece := range piecesOf(testProgram(4)) {
		c.add(piece)
		if c.bytes > maxCopying {
			t.Fatalf("%d bytes", c.bytes)
		}
	}
	if len(c.whole) != 0 || c.bytes != maxCopying-pieceData {
		t.Errorf("%d programs, %d bytes", len(c.whole), c.bytes)
	}
}

// FuzzPieces adds pieces with any content: nothing panics, and complete programs decode.
func FuzzPieces(f *testing.F) {
	for _, b := range piecesOf(testProgram(4)) {
		f.Add(b[:200], uint8(2))
	}
	f.Fuzz(func(t *testing.T, content []byte, at uint8) {
		c := collector{}
		list := piecesOf(testProgram(4))
		odd := make([]byte, pieceSize)
		copy(odd, content)
		list[int(at)%len(list)] = odd
		for _, b := range list {
			c.add(b)
		}
		if c.bytes < 0 || c.bytes > maxCopying {
			t.Fatalf("%d bytes", c.bytes)
		}
		for _, x := range c.whole {
			if list := decode(t, []*Copy{x}); len(list) != 1 {
				t.Fatalf("%d programs", len(list))
			}
		}
	})
}
