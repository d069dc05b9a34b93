// Package moves has the kernel report, in the rings of perf events, where processes move mappings to
// by mremap(2): of which perf has no record.
//
// A small BPF program sends a sample of a software event (PERF_COUNT_SW_BPF_OUTPUT) with the
// addresses, so that moves come between the records of mappings, in the order of their times. It runs
// where the kernel copies a mapping to another address (a kprobe of copy_vma), which nothing else
// pays for. A kernel without kprobes has it run at the exit of each system call, which costs each of
// them some ten ns.
package moves
