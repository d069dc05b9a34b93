package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"symbolize/fixtures/must"
)

// liveCode is the code of a program: its file, and which offsets of that are mapped as code.
type liveCode struct {
	file  []byte
	parts [][2]uint64 // offsets, the second is behind the end
}

func readLiveCode(t *testing.T, path string) *liveCode {
	t.Helper()
	data := must.Read(t, path)
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := &liveCode{file: data}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			c.parts = append(c.parts, [2]uint64{p.Off, p.Off + p.Filesz})
		}
	}
	return c
}

func (c *liveCode) has(at uint64) bool {
	return slices.ContainsFunc(c.parts, func(p [2]uint64) bool { return p[0] <= at && at < p[1] })
}

// behindCall reports whether an x86-64 call instruction ends at an offset: E8 with 4 bytes that
// lead to code, or FF /2 with the length by its first byte, 2 to 7 bytes together.
func (c *liveCode) behindCall(at uint64) bool {
	if at < 8 || at > uint64(len(c.file)) || !c.has(at-1) {
		return false
	}
	before := c.file[at-8 : at]
	if before[3] == 0xe8 {
		by := int32(binary.LittleEndian.Uint32(before[4:]))
		if c.has(at + uint64(int64(by))) { // one segment: addresses differ as offsets do
			return true
		}
	}
	for length := range uint64(8) {
		if length < 2 {
			continue
		}
		call := before[8-length:]
		if call[0] == 0xff && call[1]>>3&7 == 2 && length == 1+operandLen(call[1:]) {
			return true
		}
	}
	return false
}

// operandLen is how long an operand is that begins with the byte ModRM.
func operandLen(b []byte) uint64 {
	mod, rm := b[0]>>6, b[0]&7
	n := uint64(1)
	if mod != 3 && rm == 4 { // SIB
		n++
		if mod == 0 && len(b) > 1 && b[1]&7 == 5 {
			n += 4
		}
	}
	switch {
	case mod == 1:
		n++
	case mod == 2 || mod == 0 && rm == 5:
		n += 4
	}
	return n
}

// TestBehindCall: calls of all lengths are found, and other code is not.
func TestBehindCall(t *testing.T) {
	for _, tt := range []struct {
		code string
		want bool
	}{
		{code: "\xe8\xf7\xff\xff\xff", want: true},         // call to the first byte
		{code: "\xe8\xf0\xff\xff\x7f"},                     // far outside
		{code: "\xff\xd0", want: true},                     // *%rax
		{code: "\x41\xff\xd4", want: true},                 // *%r12
		{code: "\xff\x10", want: true},                     // *(%rax)
		{code: "\xff\x14\xc0", want: true},                 // *(%rax,%rax,8)
		{code: "\xff\x50\x08", want: true},                 // *8(%rax)
		{code: "\xff\x54\x24\x08", want: true},             // *8(%rsp)
		{code: "\xff\x15\x00\x00\x00\x00", want: true},     // *0(%rip)
		{code: "\xff\x90\x00\x01\x00\x00", want: true},     // *256(%rax)
		{code: "\xff\x14\xc5\x00\x00\x00\x00", want: true}, // *0(,%rax,8)
		{code: "\xff\x94\x24\x00\x01\x00\x00", want: true}, // *256(%rsp)
		{code: "\xff\xd0\x00"},                             // behind something else
		{code: "\xff\x15\x00\x00"},                         // cut off
		{code: "\xff\x20"},                                 // jmp *(%rax)
		{code: "\xff\x94\x24\x00\x01\x00"},                 // cut off
		{code: "\x00\x00\x00\x00\x00"},                     // nothing
	} {
		c := &liveCode{file: []byte("\x90\x90\x90\x90\x90\x90\x90\x90" + tt.code)}
		end := uint64(len(c.file))
		c.parts = [][2]uint64{{0, end}}
		if got := c.behindCall(end); got != tt.want {
			t.Errorf("%x: %t", tt.code, got)
		}
		c.parts = [][2]uint64{{0, end - 1}}
		if c.behindCall(end) {
			t.Errorf("%x: a call in data", tt.code)
		}
	}
}
