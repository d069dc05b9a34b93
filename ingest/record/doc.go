// Package record records, on a running host, the data for resolving that perf.data files do not
// contain: code, lines and BTF of every BPF program that existed during the recording, the kernel's
// symbols and modules, the vdso, and the mappings of processes. It writes a bundle (package
// ingest/format/bundle). Linux only.
//
// # How
//
// A ring per CPU of a dummy software event with ksymbol and bpf_event records every load and unload
// of a BPF program with perf's time. The ring wakes its reader at the first byte. The reader is a
// thread of its own, with real-time priority if allowed. It opens a program by its id at once,
// which keeps the program loaded, reads its info, arrays and BTF, and closes it: no program is kept
// alive. Programs that are already unloaded are counted and named. With Options.KernelCopy the
// kernel copies each program before its loader continues.
//
// Data is written to temporary files: memory grows by only some bytes per program.
//
// A recording is a sequence of parts of at most ten seconds. A flusher makes each part durable: recorders
// hand over their data of the part and forget it, so that memory does not grow with time. A part
// contains the data for its samples: the sampler turns first, then the side band is cut, and
// mappings of ended processes are forgotten after they are written.
//
// Record runs a set of recorders, one for each kind of data (type recorder).
package record
