// Package reporter has BPF programs through which the kernel reports what user space would see too
// late or not at all. Linux only.
//
// A Copier copies BPF programs while they are being loaded, so that code, lines and BTF are recorded
// of programs that are gone before user space could read them. Its program sends pieces, which Pieces
// puts together.
//
// A MoveReporter reports the addresses to which processes move mappings by mremap(2), of which perf
// has no record. Its program sends a sample of a software event (PERF_COUNT_SW_BPF_OUTPUT) between
// the records of mappings, in the order of their times. It runs where the kernel copies a mapping to
// another address (a kprobe of copy_vma), which costs nothing else. On a kernel without kprobes it
// runs at the exit of each system call, which costs each of them some ten ns.
package reporter
