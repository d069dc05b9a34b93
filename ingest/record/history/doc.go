// Package history keeps which code processes mapped, and when, by the kernel's records of new
// mappings. A copy of a process's mappings is made some time before or after a sample; the records
// between the two prove that an address had the same code at both times, or that it had not.
//
// There is no record of code that is unmapped, or moved by mremap: the former leaves nothing that
// could be sampled, the latter is noticed where copies before and after it differ.
package history
