// Package sampler counts stacks inside the kernel: a BPF program at a clock, a
// tracepoint or a function takes the user's stack as build IDs and file offsets and the
// kernel's as addresses, and adds to a count under both and the process.
//
// A map of type STACK_TRACE would lose 4 to 6 % of the samples to stacks that share a
// bucket. Here a stack's key is a hash of 128 bits: with a million distinct stacks two of
// them are taken for one with a chance of 2^-89. A stack is sent up once, through a ring
// buffer, when its hash is new; after that only its count is touched. User space empties
// the counts when half of them are in use, so that the kernel's memory, at most
// MaxKernelMemory, does not grow with the length of a recording.
//
// Build IDs are looked up once for a stack: those of bare addresses that were met before, in
// the same process with the same mappings, which the kernel counts the changes of, have the
// hash that they had then. It takes a third of the time.
//
// Addresses without a build ID mean something by their process's mappings alone, and a
// process may live for a few milliseconds: the first stack that has some wakes the reader,
// once for each program that a process runs. All other stacks wait for it.
//
// Losses are counted by cause: there is no room in the ring or in the counts, or the kernel could
// not take the stack.
package sampler
