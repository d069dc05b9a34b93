// Package ehframe finds where functions begin and end by .eh_frame, the table that
// exceptions and stack traces are unwound by. Even stripped programs have it, so it
// is the last resort: ranges without names. It also tells the code that signal handlers
// return to, by the augmentation "S".
//
// Only these are read; the rules of unwinding are skipped. .eh_frame_hdr, which
// is an index of the same, is not needed. References: Linux Standard Base Core 5.0,
// 10.6 "Exception Frames" and DWARF 5, 6.4.1; where they are silent, what GCC's
// unwinder (unwind-pe.h, unwind-dw2-fde.c) and LLVM (DWARFDebugFrame.cpp) do.
//
// A length that is wrong ends the walk, since nothing after it can be found. Any
// other damage loses one entry. An entry refers back to a common one by distance, so
// that a hostile file can make each entry name another; each is read in constant
// time, whatever it says, and nothing is allocated.
package ehframe
