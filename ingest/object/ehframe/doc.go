// Package ehframe finds the ranges of functions in .eh_frame, the table for unwinding
// exceptions and stack traces. Even stripped programs have it, so it is the last resort:
// ranges without names. It also marks the code that signal handlers return to, by the
// augmentation "S".
//
// Only these are read; the rules of unwinding are skipped. .eh_frame_hdr, an index of
// the same entries, is not needed. References: Linux Standard Base Core 5.0,
// 10.6 "Exception Frames" and DWARF 5, 6.4.1; otherwise GCC's unwinder (unwind-pe.h,
// unwind-dw2-fde.c) and LLVM (DWARFDebugFrame.cpp).
//
// A wrong length ends the walk, since nothing after it can be found. Any other damage
// loses one entry. An entry refers back to a common one by distance, so that a hostile
// file can make each entry refer to another; each is read in constant time, and nothing is
// allocated.
package ehframe
