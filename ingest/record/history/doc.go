// Package history keeps which code was where, and when.
//
// A Log has the code that processes mapped, by the kernel's records of new mappings. A copy of a
// process's mappings is made before or after a sample; the records between the two prove that an
// address had the same code at both times, or that it had not. Without a copy, as for a process that
// lived for a few milliseconds, the records have the code themselves: a program maps all of it after
// its exec, and a child has the mappings of its parent at the fork. There are no records of unmapped
// code, which cannot be sampled, nor of mremap: package reporter reports it.
//
// A CodeLog has the times at which the code at kernel addresses changed. Modules records the kernel
// modules of this host (Linux) and when each comes and goes.
package history
