// Package bpfobj decodes BPF object files: what `clang -target bpf` compiles and loaders
// read. It says which programs a file holds, what their tags are once they are loaded,
// and which line each instruction was made of.
//
// # What a loader makes of a file
//
// Each function outside of .text is a program. Functions in .text are subprograms: a
// loader appends those that a program calls, and changes the calls. libbpf appends a
// subprogram where its first call stands, before what it calls itself
// (bpf_object__reloc_code in tools/lib/bpf/libbpf.c); cilium/ebpf appends all that a
// function calls in the order of their names before it goes on to the next
// (flattenInstructions in linker.go). Both orders are tried.
//
// # Tags
//
// A tag is the first 8 bytes of a digest of the instructions as they are handed to the
// kernel, the immediate of both halves of a map reference set to 0: SHA-1 up to Linux
// 6.17, SHA-256 since 6.18 (bpf_prog_calc_tag in kernel/bpf/core.c). Since map references
// do not count, neither do a host's maps, nor where variables lie in them. What CO-RE
// relocations, calls of kernel functions and addresses of kernel symbols become, only the
// host knows: the tag of such a program is the one it has where the host's types are those
// that it was compiled with, and Function.Uncertain says what it hangs on.
//
// Each function of a program with subprograms has a tag of its own besides. The kernel
// computes it from instructions that it has rewritten: calls of subprograms, which depend
// on their order alone, but also calls of helpers, which become distances in that kernel's
// code, and divisions, of which it guards those by registers. Without the latter two the
// tag can be computed here; Function.Rewritten says what stands against it.
//
// # Trust
//
// Counts are checked against what is left, and what a program grows to by its
// subprograms is bounded. What is wrong with one function costs that function only.
package bpfobj
