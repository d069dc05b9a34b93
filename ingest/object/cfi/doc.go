// Package cfi is the common form of decoded unwind tables: rules, which locate the caller's stack
// pointer, return address and callee-saved registers, and rows, which give the address at which a
// rule starts to apply.
//
// The model is from DWARF 5, section 6.4, reduced to the registers that an unwinder of
// sampled stacks needs: the callee-saved ones. Decoders of .eh_frame and
// .debug_frame (ehframe), of Go's pcsp (gopclntab) and of .sframe (sframe) fill a Builder, which
// merges them into one ascending list of rows. DWARF expressions are kept as bytes.
package cfi
