// Package cfi decodes unwind tables into a common form: rules, which locate the caller's stack
// pointer, return address and callee-saved registers, and rows, which give the address at which a
// rule starts to apply.
//
// The model is from DWARF 5, section 6.4, reduced to the registers that an unwinder of sampled
// stacks needs: the callee-saved ones. The decoders of .eh_frame and .debug_frame (EHFrame), of
// .sframe (SFrame), and of Go's pcsp (package gopclntab) fill a Builder, which merges them into one
// ascending list of rows. DWARF expressions are kept as bytes.
//
// # .eh_frame
//
// .eh_frame is the table for unwinding exceptions and stack traces; .debug_frame is its older form
// in debug information. Frames lists the ranges of functions, without names; even stripped programs
// have .eh_frame. It marks code that signal handlers return to (augmentation "S"). Rules executes
// the call frame instructions. .eh_frame_hdr, an index of the same entries, is not needed.
// References: Linux Standard Base Core 5.0, 10.6 "Exception Frames", and DWARF 5, 6.4.1; otherwise
// GCC's unwinder (unwind-pe.h, unwind-dw2-fde.c) and LLVM (DWARFDebugFrame.cpp).
//
// A wrong length ends the walk, since no later entry can be found. Any other damage loses one
// entry. Entries refer to a common entry by distance, so a hostile file can make each refer to a
// different one. Frames reads each entry in constant time and allocates nothing; the number of
// instructions that Rules executes is bounded in proportion to the size of the section.
//
// # .sframe
//
// .sframe, versions 1 to 3, has rules without expressions and without other registers than the
// frame pointer, for x86-64 and arm64. The format, little-endian
// (https://sourceware.org/binutils/docs/sframe-spec.html, and include/sframe.h of binutils for
// versions 1 and 2):
//
//	u16 magic 0xdee2, u8 version, u8 flags, u8 ABI, i8 fixed FP offset, i8 fixed RA offset,
//	u8 length of an auxiliary header, u32 functions, u32 rows, u32 bytes of rows,
//	u32 offset of functions, u32 offset of rows, both from the end of the headers
//	function, version 1: i32 start, u32 size, u32 offset of its rows, u32 rows, u8 info
//	function, version 2: the same, u8 size of a repeated block, u16 0
//	function, version 3: i64 start, u32 size, u32 offset of u16 rows, u8 info, u8 kind,
//	  u8 size of a repeated block, and then its rows
//	row: start from that of the function, of 1, 2 or 4 bytes; u8 info; data words of 1, 2 or 4 bytes
//
// Starts are relative to the section, with flag 4 and in version 3 to the function's entry. Info of
// a function: bits 0 to 3 are log2 of the width of its rows' starts; bit 4: the rows are of a block
// that repeats (PLT); bit 7, version 3: signal frame. Info of a row: bit 0: the CFA is of the stack
// pointer, not the frame pointer; bits 1 to 4: number of data words; bits 5 and 6: log2 of their
// width; bit 7: the return address is signed. A row without words has no caller. The words are
// offsets: of the CFA; of the return address from the CFA where none is fixed; of the saved frame
// pointer. In functions of kind 1 each is a pair, of a register<<3 | dereference<<1 | 1, or
// dereference<<1 for the CFA, and an offset; a lone 0 means that there is none.
//
// Version 1 does not have the size of repeated blocks: such functions, the PLT, are left out.
package cfi
