// Package record records on a running host the data that resolving needs later and that no
// perf.data has: the code, lines and BTF of every BPF program that was there at some
// time of the recording, the kernel's symbols and modules, the vdso, the mappings of
// processes. It writes a bundle (package ingest/format/bundle). Linux only.
//
// # How
//
// A ring per CPU of a dummy software event with ksymbol and bpf_event gives every load and unload
// of a BPF program with perf's time. The ring wakes its reader at the first byte; the reader is one
// thread of its own, of real-time priority where that is allowed, which turns a program's id into a
// file descriptor at once: from then on the program cannot go. Its info, arrays and BTF are read
// and the descriptor is closed: nothing is kept alive. Programs that are gone by then are counted
// and named, and Options.KernelCopy has the kernel itself copy them before their loader can go on.
//
// The data goes to temporary files, so that memory does not grow with the number of programs, but
// for some bytes each.
//
// A recording is a sequence of parts, of ten seconds each, which a flusher makes durable one by
// one: recorders hand out their data of a part and forget it, so that memory does not grow
// with time either. The data for a sample is in its part: the sampler turns first, then the
// side band is cut, and mappings of ended processes are forgotten when they are written.
//
// Record is made of recorders, one for each kind of thing (type recorder).
package record
