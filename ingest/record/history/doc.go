// Package history keeps which code processes mapped, and when, by the kernel's records of new
// mappings. A copy of a process's mappings is made some time before or after a sample; the records
// between the two prove that an address had the same code at both times, or that it had not. Where
// there is no copy, as of a process that lived for a few milliseconds, they have the code themselves:
// a program maps all of it after its exec, and a child has what its parent had at the fork.
//
// There is no record of code that is unmapped, which leaves nothing that could be sampled. What mremap
// moves has none either: package moves reports it.
package history
