package unwind

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/jitbuild"
	"symbolize/ingest"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/input"
	"symbolize/store"
	"symbolize/store/indexer"
)

// trampoline is a function as CPython 3.13 makes one for each function in Python, and its
// .eh_frame, 16 bytes after the function's start; both were copied from a file of CPython.
const (
	trampoline = "\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3"
	ehFrame    = "\x14\x00\x00\x00\x00\x00\x00\x00\x01zR\x00\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\x00\x00" +
		"\x14\x00\x00\x00\x1c\x00\x00\x00\xd0\xff\xff\xff\x0b\x00\x00\x00\x00\x44\x0e\x10\x46\x0e\x08\x00"
	ehFrameHeader = "\x01\x1b\x03\x3b\xcc\xff\xff\xff\x01\x00\x00\x00\xc0\xff\xff\xff\xe8\xff\xff\xff"
)

// TestJITDumpRules unwinds through functions without frame pointers by the rules in their jitdump
// file, with no machine in its header; without rules, or with rules of other code, the frame
// pointer decides as for any memory.
func TestJITDumpRules(t *testing.T) {
	const first, second = jitAt, jitAt + 0x100
	other := strings.Replace(ehFrame, "\xd0\xff\xff\xff", "\xd0\xfe\xff\xff", 1)
	for _, c := range []struct {
		name    string
		machine uint32
		section string
		end     input.StackEnd
		frames  int
		bad     uint64
	}{
		{name: "CPython", section: ehFrame, frames: 3},
		{name: "with a machine", machine: 62, section: ehFrame, frames: 3},
		{name: "of another machine", machine: 8, section: ehFrame, frames: 1, end: input.StackBroken},
		{name: "none", frames: 1, end: input.StackBroken},
		{name: "of other code", section: other, frames: 1, end: input.StackBroken, bad: 2},
		{name: "longer than the section", machine: 62, section: "\xff\x00\x00\x00" + ehFrame, frames: 1,
			end: input.StackBroken, bad: 2},
	} {
		d := jitbuild.New(false, 7, c.machine, 0, 0)
		for i, at := range []uint64{first, second} {
			if c.section != "" {
				d.Unwinding(0, []byte(c.section), []byte(ehFrameHeader))
			}
			d.Load(0, at, uint64(i), "f", []byte(trampoline))
		}
		b := d.Bytes()
		overlay := store.NewOverlay()
		id, f, err := indexer.AddJITDump(t.Context(), overlay,
			&indexer.JITFile{Path: "jit-7.dump", R: bytes.NewReader(b), Size: int64(len(b))})
		if err != nil || f.BadRules != c.bad || (f.FirstBadRules != nil) != (c.bad > 0) {
			t.Fatalf("%s: %v, %d bad: %v", c.name, err, f.BadRules, f.FirstBadRules)
		}
		machine := c.machine
		if c.section != "" && machine == 0 {
			machine = 62 // the rules have it
		}
		if m, _, err := store.FindOne(overlay, id); err != nil || m == nil || uint32(m.Machine) != machine {
			t.Errorf("%s: %+v, %v, want machine %d", c.name, m, err, machine)
		}
		spaces := addrspace.NewBuilder()
		for i := range f.Loads {
			l := &f.Loads[i]
			spaces.Map(0, 7, addrspace.Mapping{Start: l.Addr, End: l.Addr + 11, PgOff: uint64(l.Code), Object: 1})
		}
		// In the first function's call, from the second one's call, of a thread's first function.
		s := &input.CopiedStack{Arch: "x86_64", ABI: abi64, Mask: 0xff0fff, Asked: 8192, Spaces: spaces.Build()}
		s.Version = s.Spaces.Process(7, 0).Version()
		for i := range 20 {
			s.Regs = binary.LittleEndian.AppendUint64(s.Regs, map[int]uint64{7: stack32, 8: first + 4}[i])
		}
		for _, w := range []uint64{0, second + 6, 0, second + 6, 0, 0, 0, 0} {
			s.Memory = putWord(s.Memory, 8, w)
		}
		objects := []ingest.Object{{}, {Kind: ingest.JITDump, ID: id}}
		tables := NewTables(overlay, nil, func(err error) { t.Error(err) })
		words, end, _ := tables.For(objects).Worker().Unwind(s, nil)
		want := []uint64{first + 4, second + 6, second + 6}[:c.frames]
		if !slices.Equal(words, want) || end != c.end {
			t.Errorf("%s: %#x, end %d, want %#x, %d", c.name, words, end, want, c.end)
		}
	}
}
