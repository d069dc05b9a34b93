// Package perfdata decodes the perf.data format, files and streams: header, attrs, records and
// feature sections, in both byte orders. It holds no policy and does not depend on profiles: the
// packages that import it interpret mappings and samples.
//
// The format is the one of Linux's tools/perf/util/header.h, session.c and
// include/uapi/linux/perf_event.h, up to Linux 6.18. Additions of newer writers are
// skipped by their recorded size and counted, never fatal.
//
// Open reads the small parts (header, attrs, features) and keeps them; records are read in blocks
// by a RecordReader, any number of times, by several goroutines. A File is immutable after Open,
// and safe for concurrent use. Reading and decoding records and samples does not allocate.
//
// Data before damage is never lost: Open fails only if no record can be read at all, and reports
// everything else in File.Warnings; a RecordReader returns each record before a damaged one, and
// then the position and reason in Err.
package perfdata
