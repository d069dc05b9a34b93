// Package symlist reads the two text lists of symbols that profilers use: the kernel's list,
// /proc/kallsyms, and perf maps, /tmp/perf-PID.map, in which a process lists the code that it
// compiled at run time.
//
// # kallsyms
//
// The file is /proc/kallsyms or a copy of it, as in perf's cache and from "perf buildid-cache
// --kcore". A line is
//
//	ffffffffc0a01000 t ext4_map_blocks	[ext4]
//
// the address in hexadecimal, the type letter of nm, the name, and after a tab the module, if any
// (kernel/kallsyms.c, s_show). The lines of the kernel proper come first, sorted by address; then
// symbols of modules, of ftrace's and kprobes' trampolines, and of BPF programs.
//
// # Perf maps
//
// A line is
//
//	7f1b5c0a1000 3c0 LazyCompile:*fib /srv/app.js:1
//
// start and size in hexadecimal, with or without 0x, and the name, which reaches to the end of the
// line and may have spaces (tools/perf/Documentation/jit-interface.txt of Linux; read by
// dso__load_perf_map in tools/perf/util/symbol.c). The file only grows. It has no times: memory of
// dropped code is used again, and a later line then replaces the earlier one at the addresses that
// both have. Those addresses are PerfRange.Reused, because an earlier sample there gets the name of
// the later function.
package symlist

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line in bytes. The kernel's own limit for a name is KSYM_NAME_LEN, 512.
const maxLine = 64 << 10

// eachLine calls visit with each line of a list, without its end, until visit returns an error,
// which is returned. reason is set for a line that cannot be used: it is too long, or has no end,
// and the rest of its name could be another function's. kind is the word for the file in messages.
func eachLine(name, kind string, r io.Reader,
	visit func(line []byte, offset int64, reason string) error) error {
	in := bufio.NewReaderSize(r, maxLine)
	for offset := int64(0); ; {
		line, err := in.ReadSlice('\n')
		at, reason := offset, ""
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			reason = "line is longer than 64 KiB"
		case err != nil:
			reason = "the " + kind + " breaks off in this line"
		}
		offset += int64(len(line))
		if len(line) > 0 {
			if err := visit(bytes.TrimRight(line, "\r\n"), at, reason); err != nil {
				return err
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			line, err = in.ReadSlice('\n')
			offset += int64(len(line))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: offset %#x: %w", name, offset, err)
		}
	}
}
