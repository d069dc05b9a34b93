// Package sframe reads .sframe sections, versions 1 to 3: rules that unwind stacks without
// expressions and without other registers than the frame pointer, for x86-64 and arm64.
//
// The format, little-endian (https://sourceware.org/binutils/docs/sframe-spec.html, and
// include/sframe.h of binutils for versions 1 and 2):
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
// Starts are relative to the section, with flag 4 and in version 3 to the function's entry. Info
// of a function: bits 0 to 3 are log2 of the width of its rows' starts; bit 4: the rows are of a
// block that repeats (PLT); bit 7, version 3: signal frame. Info of a row: bit 0: the CFA is of
// the stack pointer, not the frame pointer; bits 1 to 4: number of data words; bits 5 and 6: log2
// of their width; bit 7: the return address is signed. A row without words has no caller. The
// words are offsets: that of the CFA; that of the return address from the CFA where none is fixed;
// that of the saved frame pointer. In functions of kind 1 each is a pair, of a register<<3 |
// dereference<<1 | 1, or dereference<<1 for the CFA, and an offset; a lone 0 means that there
// is none.
//
// Version 1 does not have the size of repeated blocks: such functions, the PLT, are left out.
package sframe
