// Package cfi has the form that all tables for unwinding stacks are decoded to: rows, each the
// address where a rule begins to hold, and rules, which locate the caller's stack pointer,
// return address and callee-saved registers.
//
// The model is that of DWARF 5, section 6.4, reduced to the registers that an unwinder of
// sampled stacks needs: those that functions save for their callers. Decoders of .eh_frame and
// .debug_frame (ehframe), of Go's pcsp (gopclntab) and of .sframe (sframe) fill a Builder, which
// makes one ascending list of rows of them. Nothing is unrepresentable: DWARF expressions stay
// bytes.
package cfi
