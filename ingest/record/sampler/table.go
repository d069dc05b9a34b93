package sampler

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
)

// maxStacks bounds the distinct stacks of a kind that are kept.
const maxStacks = 1 << 20

// table numbers the stacks of a kind, and keeps them in a temporary file: a stack is
// used once, at the end.
type table struct {
	kind uint32
	ids  map[hash]int32
	kept []keptStack // by id
	have int         // of them, those that were received
	deep int         // frames of the deepest
	file *os.File
	buf  *bufio.Writer
	size int64
	err  error // of the file, from which on stacks are not received
	room int   // maxStacks, but in tests

	part   uint32 // its number, by which hashes differ
	empty  hash   // of no frames
	steady Range
	skip   []Range            // functions to cut off the inner end of the kernel's stacks
	far    map[int32][]uint64 // addresses outside of steady, of the kernel's stacks that have some
}

// keptStack locates a stack in the file; length 0: it was not received.
type keptStack struct {
	at     int64
	length uint32
	bare   bool // some user frame of it has no build ID
}

// noID is the id of all stacks beyond the room there is. No stack has it.
const noID = math.MaxInt32

// errFault is EFAULT, which the kernel uses too for a missing part.
const errFault = 14

func newTable(kind, part uint32) (*table, error) {
	f, err := os.CreateTemp("", "symbolize-stacks-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil { // no file remains after a crash
		return nil, errors.Join(err, f.Close())
	}
	return &table{kind: kind, part: part, empty: hashIn(part, nil), ids: make(map[hash]int32), file: f,
		buf: bufio.NewWriterSize(f, 1<<18), room: maxStacks, far: make(map[int32][]uint64)}, nil
}

func (t *table) close() { t.file.Close() }

// stacks returns how many stacks were received.
func (t *table) stacks() int { return t.have }

// id returns the number of a stack, which may still be on its way; the errno of one that
// could not be taken.
func (t *table) id(h hash) int32 {
	switch {
	case h == t.empty: // an empty part
		return -errFault
	case h[1] == noStack && int64(h[0]) < 0:
		return int32(max(int64(h[0]), -1<<31))
	}
	id, ok := t.ids[h]
	if !ok {
		if len(t.kept) >= t.room {
			return noID
		}
		id = int32(len(t.kept))
		t.ids[h] = id
		t.kept = append(t.kept, keptStack{})
	}
	return id
}

// add keeps a stack. It reports whether user frames of it have no build ID.
func (t *table) add(h hash, frames []byte) (bare bool) {
	id := t.id(h)
	if id < 0 || id == noID || len(frames) == 0 || t.err != nil {
		return false
	}
	k := &t.kept[id]
	if k.length != 0 {
		return k.bare // forgotten by the kernel and sent again
	}
	if _, t.err = t.buf.Write(frames); t.err != nil {
		return false
	}
	n := frame(t.kind)
	k.at, k.length, k.bare = t.size, uint32(len(frames)), t.kind == userStack && hasAddress(frames)
	if t.kind == kernelStack {
		if far := t.steady.far(frames); far != nil {
			t.far[id] = far
		}
	}
	t.deep = max(t.deep, len(frames)/n)
	t.have++
	t.size += int64(len(frames))
	return k.bare
}

// isBare reports whether user frames of a stack have no build ID.
func (t *table) isBare(id int32) bool { return id >= 0 && id < noID && t.kept[id].bare }

// received reports whether a stack or its errno is there; one without frames is not sent.
func (t *table) received(id int32) bool {
	return id < 0 || id != noID && t.kept[id].length != 0
}

// read returns the frames of a stack in b, which is long enough.
func (t *table) read(id int32, b []byte) ([]byte, error) {
	k := &t.kept[id]
	b = b[:k.length]
	_, err := t.file.ReadAt(b, k.at)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// hasAddress reports whether a frame is an address, not a build ID and offset: status 2 of
// struct bpf_stack_build_id.
func hasAddress(frames []byte) bool {
	for ; len(frames) >= userFrame; frames = frames[userFrame:] {
		if binary.NativeEndian.Uint32(frames) == statusIP {
			return true
		}
	}
	return false
}

const statusIP = 2

// flush makes added stacks readable. A stack that is not in the file, because it could not be
// written, was not received.
func (t *table) flush() {
	if err := t.buf.Flush(); t.err == nil {
		t.err = err
	}
	if t.err == nil {
		return
	}
	var size int64
	if fi, err := t.file.Stat(); err == nil {
		size = fi.Size()
	}
	for i := range t.kept {
		if k := &t.kept[i]; k.at+int64(k.length) > size {
			*k = keptStack{}
			t.have--
		}
	}
}
