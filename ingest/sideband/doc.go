// Package sideband knows who was mapped where and when: the address spaces of processes and
// of the kernel over the time of a capture, the objects in them, names of threads, and BPF
// programs.
//
// A State comes from the records of a perf.data file (scan.go) or, beside stack maps, from a
// kallsyms text (kallsyms.go) and copies of /proc/PID/maps. Bundles of the same boot
// (sameboot.go) add what the capture lacks (taken.go, bundlechanges.go), and BPF programs are
// matched with the records that name them (matchprograms.go). All becomes a list of changes,
// which Build applies in order of time (state.go). The objects are as records distinguish
// them (objects.go); Identifier finds build IDs for those that have none (identify.go).
package sideband
