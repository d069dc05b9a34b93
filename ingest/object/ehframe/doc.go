// Package ehframe reads .eh_frame, the table for unwinding exceptions and stack traces, and
// .debug_frame, its older form in debug information.
//
// Frames lists the ranges of functions, without names; even stripped programs have .eh_frame. It
// marks code that signal handlers return to (augmentation "S"). Rules executes the call frame
// instructions and adds the resulting rules to a cfi.Builder, expressions as bytes. .eh_frame_hdr,
// an index of the same entries, is not needed. References: Linux Standard Base Core 5.0, 10.6 "Exception Frames" and DWARF 5, 6.4.1; otherwise GCC's
// unwinder (unwind-pe.h, unwind-dw2-fde.c) and LLVM (DWARFDebugFrame.cpp).
//
// A wrong length ends the walk, since no later entry can be found. Any other damage loses one
// entry. Entries refer to a common entry by distance, so a hostile file can make each refer to a
// different one. Frames reads each entry in constant time and allocates nothing; the number of
// instructions that Rules executes is bounded in proportion to the size of the section.
package ehframe
