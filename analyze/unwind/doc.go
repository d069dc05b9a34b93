// Package unwind unwinds user stacks from the registers and the stack memory that perf record
// --call-graph dwarf copied, by the unwind tables of a store: later, elsewhere, without the
// binaries. It implements input.Unwinder.
//
// A frame's rule is looked up by its program counter: exact in the first frame and after a signal
// frame, otherwise one byte less, since a call that does not return may end its function. CFA,
// return address and registers are computed from the old registers; registers that no rule saves
// are unknown in the caller. The rules of tables are described in package cfi. In addition:
//
//   - In an exact frame a register whose place is below the stack pointer, or not below the CFA,
//     was popped already and is kept: epilogues of gcc do not describe all pops.
//   - The CFA grows from frame to frame, except in the first and across signal frames. With the
//     bounds on frames and on signal frames a chain ends.
//   - A return address in no mapping of code is dropped: the chain is broken there.
//   - Code without rules (JIT, objects that are not indexed) is stepped over by frame pointer if
//     that points into the copied stack and a mapped return address is there, with a caller of
//     its own. If a word below that points to code, and so may be the return address of a caller in
//     between, the step is a guess: not made where a table could be indexed, otherwise marked and
//     counted.
//   - A stack ends where the return address is undefined, zero, or the code has no caller.
//
// Only the copied memory is read. An address above it in a copy that is as long as was asked
// for is a truncated stack; any other is on another stack (sigaltstack, Go's systemstack).
//
// perf (tools/perf/util/unwind-libunwind-local.c, unwind-libdw.c) and the unwinders of LLVM and
// GCC (DwarfInstructions.hpp, unwind-dw2.c) are the models.
package unwind
