// Package sampler counts stacks inside the kernel. A BPF program on a clock, a tracepoint or a
// function reads the user stack as build IDs and file offsets and the kernel stack as addresses,
// and adds to a count by both stacks and the process.
//
// A map of type STACK_TRACE would lose 4 to 6 % of the samples to stacks that share a bucket. Here
// a stack's key is a hash of 128 bits: among a million distinct stacks two have the same hash with
// a probability of 2^-89. A stack with a new hash is sent to user space once, through a ring
// buffer; afterwards only its count changes. User space empties the counts when half of them are in
// use: kernel memory is at most MaxKernelMemory, however long the recording.
//
// Build IDs are looked up once for a stack. If the same bare addresses were seen before in the same
// process with the same mappings (the kernel counts changes of mappings), the stack has the same
// hash as then. That takes a third of the time.
//
// Addresses without a build ID are resolved by the mappings of their process, which may live for
// only a few milliseconds. The first stack with such an address wakes the reader, once for each
// program that a process runs. All other stacks wait for the next Drain.
//
// Losses are counted by cause: the ring or the map of counts is full, or the kernel could not read
// the stack.
package sampler
