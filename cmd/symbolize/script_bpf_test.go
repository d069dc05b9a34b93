package main

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"

	"github.com/google/pprof/profile"
	"github.com/rogpeppe/go-internal/testscript"
)

// cmdImageless is `imageless FROM TO`: copies a perf.data file without the data read of
// BPF programs (the features BPF_PROG_INFO and BPF_BTF). Their records stay.
func cmdImageless(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: imageless FROM TO")
	}
	const (
		dataAt, bitsAt = 40, 72 // in struct perf_file_header
		progInfo, btf  = 25, 26
		entry          = 16
	)
	b := []byte(ts.ReadFile(args[0]))
	le := binary.LittleEndian
	table := le.Uint64(b[dataAt:]) + le.Uint64(b[dataAt+8:])
	have := le.Uint64(b[bitsAt:])
	for _, bit := range []int{btf, progInfo} {
		if have>>bit&1 == 0 {
			ts.Fatalf("%s has no feature %d", args[0], bit)
		}
		at := table + entry*uint64(bits.OnesCount64(have&(1<<bit-1)))
		end := table + entry*uint64(bits.OnesCount64(have))
		copy(b[at:end], b[at+entry:end])
		have &^= 1 << bit
	}
	le.PutUint64(b[bitsAt:], have)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o644))
}

// cmdLines is `lines FILE`: prints a pprof file's mappings, as "mapping FILE BUILD-ID",
// and lines, as "NAME FILE:LINE:COLUMN from START".
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lines FILE")
	}
	p, err := profile.ParseData([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	for _, m := range p.Mapping {
		fmt.Fprintf(ts.Stdout(), "mapping %s %s\n", m.File, m.BuildID)
	}
	for _, l := range p.Location {
		for _, x := range l.Line {
			fmt.Fprintf(ts.Stdout(), "%s %s:%d:%d from %d\n", x.Function.Name, x.Function.Filename,
				x.Line, x.Column, x.Function.StartLine)
		}
	}
}
