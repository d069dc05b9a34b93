// Package history records which code was mapped where, and when.
//
// A Log holds the code that processes mapped, from the kernel's records of new mappings. A copy of
// a process's mappings is made before or after a sample; the records between them prove that an
// address had the same code at both times, or different code. Without a copy, as of a process that
// lived for a few milliseconds, the records themselves have the code: a program maps all of it
// after its exec, and a child has its parent's mappings at the fork. There are no records of
// unmapped code, which cannot be sampled, nor of mremap, which package reporter reports.
//
// A CodeLog holds the times at which the code at kernel addresses changed. Modules records the
// kernel modules of this host (Linux), with their loads and unloads.
package history
