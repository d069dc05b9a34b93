package sideband

import (
	"encoding/binary"
	"io"

	"symbolize/ingest/addrspace"
	"symbolize/ingest/files"
)

// Most records of a long recording of a whole machine are of processes that started and ended
// between two samples. Which processes have samples is known at the end: until then the changes of
// processes are in a spool, and later only the needed ones are in memory.

// processChanges are the changes of processes, mappings, names and forks, in the order of the file.
type processChanges struct {
	spool *files.Spool
	full  bool // the file system of temporary files is full: further ones are in the list
	b     []byte
}

const (
	// changesInMemory is how much of the spool is in memory, in bytes: 600,000 changes.
	changesInMemory = 32 << 20
	// changeSize is the size of a change in the spool; changesAtOnce are written and read together.
	changeSize    = 51
	changesAtOnce = 1024
)

// add adds a change, and reports whether it did.
func (x *processChanges) add(e *change) bool {
	if x.full || len(x.b) == changesAtOnce*changeSize && !x.flush() {
		return false
	}
	for _, v := range [...]uint64{e.time, e.a, e.b, e.c} {
		x.b = binary.LittleEndian.AppendUint64(x.b, v)
	}
	for _, v := range [...]uint32{uint32(e.pid), uint32(e.tid), e.ref, e.seq} {
		x.b = binary.LittleEndian.AppendUint32(x.b, v)
	}
	flag := byte(0)
	if e.flag {
		flag = 1
	}
	x.b = append(x.b, e.kind, byte(e.layer), flag)
	return true
}

// flush writes b to the spool. If that fails, b stays.
func (x *processChanges) flush() bool {
	if x.spool == nil {
		x.spool = files.NewSpool(changesInMemory)
	}
	size := x.spool.Size()
	if _, err := x.spool.Write(x.b); err != nil {
		x.spool.Truncate(size)
		x.full = true
		return false
	}
	x.b = x.b[:0]
	return true
}

// each calls f with the changes, in order.
func (x *processChanges) each(f func(*change)) error {
	if x.spool != nil {
		b := make([]byte, changesAtOnce*changeSize)
		for at := int64(0); at < x.spool.Size(); {
			n, err := x.spool.ReadAt(b[:min(int64(len(b)), x.spool.Size()-at)], at)
			if err != nil && err != io.EOF {
				return err
			}
			decodeChanges(b[:n], f)
			at += int64(n)
		}
	}
	decodeChanges(x.b, f)
	return nil
}

func decodeChanges(b []byte, f func(*change)) {
	u64, u32 := binary.LittleEndian.Uint64, binary.LittleEndian.Uint32
	for ; len(b) >= changeSize; b = b[changeSize:] {
		f(&change{time: u64(b), a: u64(b[8:]), b: u64(b[16:]), c: u64(b[24:]), pid: int32(u32(b[32:])),
			tid: int32(u32(b[36:])), ref: u32(b[40:]), seq: u32(b[44:]), kind: b[48],
			layer: addrspace.Layer(b[49]), flag: b[50] != 0})
	}
}

// close removes the spool.
func (x *processChanges) close() {
	if x.spool != nil {
		_ = x.spool.Close() // a file without a name
	}
	*x = processChanges{}
}
