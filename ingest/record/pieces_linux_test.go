package record

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/format/bpf"
)

// piecesOf returns the pieces that the kernel copier sends for a built program.
func piecesOf(p bpfbuild.Program) (out [][]byte) {
	o := binary.NativeEndian
	raw := rawOf(p)
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
	send(pieceFuncInfo, 0, 0, 0, raw.Arrays[bpf.ArrayFuncInfo])
	send(pieceLineInfo, 0, 0, 0, raw.Arrays[bpf.ArrayLineInfo])
	send(pieceJITedLines, 0, 0, 0, raw.Arrays[bpf.ArrayJITedLineInfo])
	send(pieceBTF, 0, 0, 0, bpfbuild.BTF(bigEndian, &p))
	send(pieceEnd, 0, 0, 0, nil)
	for i := 16; i < 32; i++ { // old content of the ring
		out[len(out)-1][i] = 0xff
	}
	return out
}

func newTestCopies(t *testing.T) *copies {
	t.Helper()
	c := &copies{s: &session{opts: &Options{}, summary: &Summary{}},
		partial: make(map[uint32]*copied)}
	var err error
	if c.infos, err = newSpool(); err == nil {
		c.blobs, err = newSpool()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
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
	k := newFakeKernel(4, 5)
	p := newTestPrograms(t, k)
	p.present(4)
	p.present(5)
	want := withoutRaw(decodeSpools(t, p.infos, p.blobs))
	for name, list := range map[string][][]byte{"in turn": slices.Concat(a, b), "mixed": mixed} {
		c := newTestCopies(t)
		for _, piece := range list {
			c.piece(piece)
		}
		if len(c.partial) != 0 || c.bytes != 0 || c.s.summary.Lost != nil {
			t.Errorf("%s: %d programs with %d bytes are left; lost %v", name, len(c.partial), c.bytes,
				c.s.summary.Lost)
		}
		if got := withoutRaw(decodeSpools(t, c.infos, c.blobs)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

// TestPiecesDamaged: without one of its pieces a program is not whole, or lacks its
// data; truncated pieces are skipped.
func TestPiecesDamaged(t *testing.T) {
	all := piecesOf(testProgram(4))
	const second = 3 // code of the second function; that of the first are two
	for without := range all {
		want := 0
		if without > second && without < len(all)-1 {
			want = 1 // a kernel may lack lines or BTF
		}
		c := newTestCopies(t)
		for i, piece := range all {
			if i != without {
				c.piece(piece)
			}
		}
		if got := len(c.infos.entries); got != want {
			t.Errorf("without piece %d: %d programs, want %d", without, got, want)
		}
	}
	c := newTestCopies(t)
	for n := range pieceSize {
		c.piece(all[0][:n])
	}
	if len(c.partial) != 0 {
		t.Error("a program began with a piece that is not whole")
	}
	skip := bytes.Clone(all[3]) // of the second function: one that skips a number
	binary.NativeEndian.PutUint32(skip[8:], 7)
	unknown := bytes.Clone(all[3])
	binary.NativeEndian.PutUint32(unknown, 99)
	long := bytes.Clone(all[1])
	binary.NativeEndian.PutUint32(long[12:], 1<<31)
	for _, piece := range [][]byte{all[0], unknown, long, skip, all[len(all)-1]} {
		c.piece(piece)
	}
	const notWhole = "copies inside the kernel that are not whole"
	if len(c.infos.entries) != 0 || c.s.summary.Lost[notWhole] != 1 {
		t.Errorf("%d programs, lost %v", len(c.infos.entries), c.s.summary.Lost)
	}
}

// TestPiecesBound: programs that never complete occupy at most maxCopying,
// and later complete ones are not kept either meanwhile.
func TestPiecesBound(t *testing.T) {
	c := newTestCopies(t)
	c.bytes = maxCopying - pieceData
	for _, piece := range piecesOf(testProgram(4)) {
		c.piece(piece)
		if c.bytes > maxCopying {
			t.Fatalf("%d bytes", c.bytes)
		}
	}
	if len(c.infos.entries) != 0 || c.bytes != maxCopying-pieceData {
		t.Errorf("%d programs, %d bytes", len(c.infos.entries), c.bytes)
	}
}

// TestFill: a copy fills the gap of a program that could not be read, and no other.
func TestFill(t *testing.T) {
	c := newTestCopies(t)
	for _, id := range []uint32{4, 5, 6} {
		for _, piece := range piecesOf(testProgram(id)) {
			c.piece(piece)
		}
	}
	p := newTestPrograms(t, newFakeKernel(5))
	p.s = c.s
	p.load(4, bpf.Tag{4, 1})
	p.load(5, bpf.Tag{5, 1})
	p.load(7, bpf.Tag{7, 1})
	if err := c.fill(p); err != nil {
		t.Fatal(err)
	}
	p.finish()
	s := p.s.summary
	if s.Copied != 1 || s.Images != 2 || s.Programs != 3 || len(s.Missing) != 1 ||
		s.Missing[0].ID != 7 {
		t.Errorf("%+v", s)
	}
	list := decodeSpools(t, p.infos, p.blobs)
	if len(list) != 2 || list[0].ID != 4 || list[0].Funcs[1].Name != "inner" {
		t.Errorf("%+v", list)
	}
	var none *copies
	if err := none.fill(p); err != nil {
		t.Error(err)
	}
}
