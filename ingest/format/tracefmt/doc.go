// Package tracefmt prints samples of tracepoints as the kernel does: by the "print fmt" of a
// tracepoint's format in tracefs, which recordings keep (perfdata.Tracepoint.Print).
//
// A print format is a format of printf and C expressions of the fields:
//
//	"skbaddr=%p location=%pS reason: %s", REC->skbaddr, REC->location,
//	    __print_symbolic(REC->reason, { 2, "NOT_SPECIFIED" }, { 3, "NO_SOCKET" })
//
// Expressions are numbers, characters, texts, REC->FIELD and its elements, the operators of C, casts
// to integers, and the kernel's helpers __print_symbolic, __print_flags, __print_hex,
// __print_hex_str, __print_array, __get_str, __get_dynamic_array and __get_dynamic_array_len
// (include/trace/stages of Linux). Whatever else a format has, such as calls of functions, makes the
// argument unknown: a sample is then not printed by its format, rather than wrongly.
package tracefmt
