// Package probe writes probes as text: definitions for tracefs as `perf probe -D` prints them, programs for
// bpftrace, and BPF programs in C. Places and variables are found in debug information, on any host; nothing is
// inserted.
//
// A probe is defined by
//
//	[[GROUP:]EVENT=]FUNCTION[@FILE][+OFFSET|:LINE|%return] [ARGUMENT…]
//	[[GROUP:]EVENT=]FILE:LINE [ARGUMENT…]
//	[[GROUP:]EVENT=]ADDRESS [ARGUMENT…]
//
// where LINE is relative to the declaration of a function, and an argument is
//
//	[NAME=]VARIABLE[.MEMBER|->MEMBER|[INDEX]…][@user][:TYPE]
//
// or `$params`, `$vars`, `$retval`, or text that tracefs knows: a register, `$comm`. A function has a probe for each of
// its definitions, and for each call of it that was inlined.
//
// # Differences from perf
//
// Without arguments a probe reads `$params`, behind `%return` `$retval`. The probes of several places have names of
// their own, since their arguments can differ; one where an argument has no place is written without it. Where perf's
// text would read something else than the variable, this package writes what is right or an error:
//
//   - a value that is a register plus an offset (DW_OP_stack_value) is no memory to read;
//   - bit fields are counted from the lowest bit, as the kernel does it;
//   - the elements of an array of arrays are arrays;
//   - uprobes do not know symbols: a global variable is at an offset of the file (@+OFFSET);
//   - of several variables of one name the innermost one is meant.
//
// References: Documentation/trace/kprobetrace.rst and uprobetracer.rst of the kernel, perf-probe(1).
package probe
