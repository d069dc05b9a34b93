// Package bpfobj decodes BPF object files, the output of `clang -target bpf` and the input
// of loaders: the programs of a file, their tags once they are loaded, and the source line
// of each instruction.
//
// # Loading
//
// Each function outside of .text is a program. Functions in .text are subprograms: a
// loader appends the functions that a program calls, and changes the calls. libbpf appends a
// subprogram at its first call, before its own callees (bpf_object__reloc_code in
// tools/lib/bpf/libbpf.c); cilium/ebpf appends all callees of a function in the order of
// their names before it continues to the next (flattenInstructions in linker.go). Both orders
// are tried.
//
// # Tags
//
// A tag is the first 8 bytes of a digest of the instructions as passed to the kernel, the immediate
// of both halves of a map reference set to 0: SHA-1 up to Linux 6.17, SHA-256 since 6.18
// (bpf_prog_calc_tag in kernel/bpf/core.c). Since map references do not count, neither do a host's
// maps, nor the offsets of variables in them. The results of CO-RE relocations, calls of kernel
// functions and addresses of kernel symbols depend on the host: the tag of such a program is valid
// for hosts with the types that it was compiled with, and Function.Uncertain names the dependency.
//
// Each function of a program with subprograms also has a tag of its own. The kernel
// computes it from instructions that it has rewritten: calls of subprograms, which depend
// on their order alone, but also calls of helpers, which become distances in that kernel's
// code, and divisions by registers, which it guards. Without the latter two the tag can be
// computed here; Function.Rewritten names the obstacle.
//
// # Trust
//
// Counts are checked against the remaining bytes, and the size of a program with its
// subprograms is bounded. Damage in one function costs that function only.
package bpfobj
