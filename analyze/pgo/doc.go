// Package pgo writes profiles for compilers, for AutoFDO's tools and for BOLT, of named or unnamed
// Profiles.
//
// The counts of a file are those of one object, by its build ID: mappings of other files at the same
// path are other objects. Offsets of the capture are converted to the addresses of the object's ELF
// file by the layout in the store, as resolve does; what has no address is left out and counted.
//
// # Pre-aggregated profiles of BOLT
//
// A text of one record a line, addresses in hexadecimal (DataAggregator.h of BOLT, LLVM 22):
//
//	E event                      the event of the S lines that follow
//	S address count              samples without branch stacks
//	T source target end count    branches from source to target; the next one was at end
//	B source target count missed branches with nothing known after them; mispredictions
//
// An address is BUILD-ID:HEX, or HEX without the build ID. perf2bolt 22 reads the build ID and
// ignores it: it adds up the counts of all objects. Later versions drop addresses with a build ID from
// profiles of programs, and those without from profiles of shared libraries. Addresses of one object
// are therefore written without it for programs, with it for libraries, and all others as X:0, which
// each version counts as unknown. B lines have the mispredictions of T lines, too, which have no column
// for them; their own count may be 0.
package pgo
