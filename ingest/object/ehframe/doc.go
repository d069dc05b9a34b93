// Package ehframe reads .eh_frame, the table for unwinding exceptions and stack traces, and
// .debug_frame, its older form in debug information.
//
// Frames has the ranges of functions. Even stripped programs have .eh_frame, so it is the last
// resort: ranges without names. It also marks the code that signal handlers return to, by the
// augmentation "S". Rules runs the call frame instructions and gives their rules to a cfi.Builder,
// expressions as bytes. .eh_frame_hdr, an index of the same entries, is not needed. References:
// Linux Standard Base Core 5.0, 10.6 "Exception Frames" and DWARF 5, 6.4.1; otherwise GCC's
// unwinder (unwind-pe.h, unwind-dw2-fde.c) and LLVM (DWARFDebugFrame.cpp).
//
// A wrong length ends the walk, since nothing after it can be found. Any other damage
// loses one entry. An entry refers back to a common one by distance, so that a hostile
// file can make each entry refer to another. Frames reads each in constant time, and allocates
// nothing; Rules runs a bounded number of instructions in proportion to the section.
package ehframe
