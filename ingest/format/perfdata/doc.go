// Package perfdata decodes the perf.data format in file mode: header, attrs,
// records and feature sections, in both byte orders. It holds no policy and
// knows nothing of profiles: what a mapping or a sample means is decided by the
// packages that import it.
//
// The format is the one of Linux's tools/perf/util/header.h, session.c and
// include/uapi/linux/perf_event.h, up to Linux 6.18. Whatever newer writers add
// is stepped over by its recorded size and counted, never fatal.
//
// Open reads the small things (header, attrs, features) and keeps them; records
// are read in blocks by a RecordReader, as often as wanted, from several
// goroutines at a time. A File is immutable after Open, and safe for concurrent
// use. Nothing on the way of a record or sample allocates.
//
// Damage never hides what was whole before it: Open fails only where no record
// could be read at all, and says everything else in File.Warnings; a
// RecordReader delivers each record before a bad one and then says where it
// stopped, and why, in Err.
package perfdata
