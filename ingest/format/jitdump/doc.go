// Package jitdump reads jit-PID.dump, in which a run-time compiler keeps the code that it makes
// and has made: names, bytes, addresses with times, and lines.
//
// The format is from tools/perf/Documentation/jitdump-specification.txt of Linux, version 1. All
// numbers are in the byte order of the recorded machine.
//
//	file   = magic u32 0x4A695444 | version u32 | header size u32 | e_machine u32 | 0 u32 |
//	         pid u32 | timestamp u64 | flags u64 | { record }
//	record = type u32 | size u32, of the record | timestamp u64 | body
//
//	0 LOAD       pid u32 | tid u32 | vma u64 | address u64 | code size u64 | index u64 |
//	             name, NUL | code
//	1 MOVE       pid u32 | tid u32 | vma u64 | old address u64 | new address u64 |
//	             code size u64 | index u64
//	2 DEBUG_INFO address u64 | entries u64 |
//	             { address u64 | line u32 | discriminator u32 | file, NUL }
//	3 CLOSE
//	4 UNWINDING_INFO size u64 | size of .eh_frame_hdr u64, within that | mapped u64 |
//	             .eh_frame | .eh_frame_hdr
//
// DEBUG_INFO is of the LOAD that follows with its address. UNWINDING_INFO is of the LOAD that
// follows: its .eh_frame has relative addresses, as if it lay after the code, at the next multiple
// of 8 bytes (tools/perf/util/genelf.c of Linux). A file "\xff" is the one of the entry before.
// Bit 0 of the flags: timestamps are of the machine's own counter, which no recording of perf has;
// else they are of CLOCK_MONOTONIC.
//
// V8 moves the addresses of DEBUG_INFO by the 64 bytes of an ELF header, to fit the files that
// `perf inject --jit` makes; see File.shift.
//
// The offset of code in the file is its place (ingest.JITDump): unlike addresses no two functions
// share it. A file that grows keeps the offsets, and its Identity.
package jitdump

import (
	"encoding/binary"

	"symbolize/ingest/procmaps"
)

const (
	magic      = 0x4A695444
	version    = 1
	headerSize = 40
	recordSize = 16 // of a record's header

	flagArchTimestamp = 1
)

// Types of records.
const (
	typeLoad = iota
	typeMove
	typeDebugInfo
	typeClose
	typeUnwindingInfo
)

// Sizes of the fixed parts of records, with their headers.
const (
	loadSize  = recordSize + 8 + 4*8
	moveSize  = recordSize + 8 + 5*8
	debugSize = recordSize + 16
	entrySize = 16 // without the name

	unwindSize = recordSize + 3*8
)

// Limits of hostile files.
const (
	maxLoads  = 8 << 20  // functions
	maxRecord = 64 << 20 // bytes of one record; the largest known function has 2 MB
	maxName   = 64 << 10 // bytes
)

// Detect reports whether a file that begins with head is a jitdump file, of any byte order.
func Detect(head []byte) bool {
	return len(head) >= 4 && (binary.LittleEndian.Uint32(head) == magic ||
		binary.BigEndian.Uint32(head) == magic)
}

// PIDOf returns the process that a path's name is of; ok is false for other names. It maps a page
// of the file as code, by which recordings have the path.
func PIDOf(file string) (pid int32, ok bool) {
	return procmaps.PIDOf(file, "jit-", ".dump")
}
