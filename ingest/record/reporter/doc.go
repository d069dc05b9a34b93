// Package reporter contains BPF programs that make the kernel report what user space would see too
// late or not at all. Linux only.
//
// A Copier copies BPF programs during their load, to record code, lines and BTF of programs that
// are unloaded before user space can read them. Its BPF program sends pieces, which Pieces joins.
//
// A MoveReporter reports the addresses to which processes move mappings by mremap(2), of which perf
// has no records. Its BPF program sends a sample of a software event (PERF_COUNT_SW_BPF_OUTPUT)
// between the records of mappings, in order of time. It runs where the kernel copies a mapping to
// another address (a kprobe of copy_vma), which costs nothing elsewhere. On a kernel without
// kprobes it runs at the exit of each system call, which costs 100 to 150 ns per call.
package reporter
