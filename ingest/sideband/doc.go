// Package sideband has the state of processes and of the kernel over the time of a capture:
// their address spaces, the objects mapped there, names of threads, and BPF programs.
//
// A State comes from the records of a perf.data file (scan.go) or, beside stack maps, from a
// kallsyms text (kallsyms.go) and copies of /proc/PID/maps. Bundles of the same boot
// (sameboot.go) add the data that the capture lacks (taken.go, bundlechanges.go), and BPF programs
// are matched with the records that name them (matchprograms.go). All becomes a list of changes,
// which Build applies in order of time (state.go). Objects differ where their records do
// (objects.go); Identifier finds build IDs for those without one (identify.go).
package sideband
