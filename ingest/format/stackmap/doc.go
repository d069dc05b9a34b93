// Package stackmap reads the stacks that BPF programs collected, in every form in which they are
// dumped or printed, and gives for all of them the same Set: distinct stacks, and samples with
// counts and labels.
//
// # Values of a BPF_MAP_TYPE_STACK_TRACE map
//
// A value is an array of addresses, or with BPF_F_STACK_BUILD_ID of struct
// bpf_stack_build_id (include/uapi/linux/bpf.h), 32 bytes a frame, innermost first:
//
//	0   s32      status: 0 the stack ends here, 1 build ID and file offset, 2 address
//	4   u8[20]   build ID, padded with zeros; its length is not stored
//	24  u64      offset in the file, or the address where no build ID was to be had
//
// An offset below 0 is of an address below the file's mapping, and in none.
//
// Counts lie in another map, under a key with the two stack ids that bpf_get_stackid returned, user
// and kernel, and labels. A negative id is an errno.
//
// # Forms
//
//   - Raw: the dump that package bundle specifies, of the stack map and of the counts.
//   - Bpftool: `bpftool map dump` as -j, -p and plain text. Only its hexadecimal bytes
//     are decoded: its "formatted" output is not always JSON, nor right.
//   - Bare: values one behind the other, and nothing else; the caller gives their size.
//   - Bpftrace: `ustack(build_id)` (bpftrace 0.25, format_build_id_stack in
//     src/types_format.cpp): a line per frame, of 40 hexadecimal digits, a blank and the
//     offset as 0x…, or of the address alone, in hexadecimal without 0x. They are in
//     keys, "@[\n…\n, comm, pid]: N", and in the output of printf, where each stack counts 1.
//     kstack prints "symbol+offset", raw addresses, or both ("perf" mode).
//   - Systing: the `.systing` export, JSON lines (docs/PROFILE_EXPORT_FORMAT.md there):
//     records p, t, f, s and x. Frames that systing could not name are
//     "unknown ([buildid:HEX]) <0xOFF>", or "buildid:HEX+0xOFF" without labels
//     (render_unresolved_build_id in src/stack_recorder.rs). Its other outputs are not read,
//     on purpose: the folded lines of systing-analyze have lost the offsets of such frames
//     ("unknown [[buildid:HEX]]", format_frame in src/analyze/flamegraph.rs), and Perfetto
//     traces and DuckDB files have no more than the export.
//   - Gadget: Inspektor Gadget's `-o json`, `jsonpretty` and `yaml`: the field buildid
//     beside addresses of a user stack, "[0]HEX +OFF; [1]ADDRESS; …", with numbers before
//     frames or without (docs/reference/stack-traces.mdx, readUserStackMap in
//     pkg/operators/ustack/ustack_linux.go). Kernel stacks are names alone.
//
// # Limits of the forms
//
// No form has the time of a sample or its CPU. A stack map alone has no counts, no pid and no comm;
// a count map has the labels that its key has. Bpftrace prints labels as the script's author
// ordered them: a word is taken for the comm and a number for the pid where there is one of each.
// Systing has pid, tid and comm. Inspektor Gadget has those of the event.
package stackmap
