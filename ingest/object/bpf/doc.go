// Package bpf decodes recorded BPF programs: struct bpf_prog_info with its arrays, as perf writes
// it to the features BPF_PROG_INFO (25) and BPF_BTF (26), and PERF_RECORD_BPF_METADATA (84).
//
// A program is a list of functions: the main one, then its subprograms. Each has a name, a tag, an
// address, its code as JITed, and lines. No running kernel is needed: names and source text are in
// the program's BTF.
//
// # Layout
//
// Both sections begin with a count of entries, u32. An entry of BPF_PROG_INFO is
//
//	u32 info_len, u32 data_len, u64 arrays, info[info_len], data[data_len]
//
// where info is struct bpf_prog_info (include/uapi/linux/bpf.h) as the kernel filled it, bit i of
// arrays is set if array i is in data, and the pointer of such an array is its offset in data;
// pointers of other arrays are undefined. An entry of BPF_BTF is { u32 id, u32 size, blob[size] }.
// Both are in the byte order of the recording host (tools/perf/util/bpf-utils.c, header.c).
//
// # Trust
//
// Every count is checked against the bytes that it counts before anything is allocated. Damage in
// one array costs that array only and is kept as Program.Err; damage in the chain of entries ends
// the section there.
package bpf
