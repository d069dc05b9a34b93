package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/rogpeppe/go-internal/testscript"
)

// dropFeatures removes features of a perf.data file; the later ones come first.
func dropFeatures(ts *testscript.TestScript, name string, b []byte, features ...int) {
	const (
		dataAt, bitsAt = 40, 72 // in struct perf_file_header
		entry          = 16
	)
	le := binary.LittleEndian
	table := le.Uint64(b[dataAt:]) + le.Uint64(b[dataAt+8:])
	have := le.Uint64(b[bitsAt:])
	for _, bit := range features {
		if have>>bit&1 == 0 {
			ts.Fatalf("%s has no feature %d", name, bit)
		}
		at := table + entry*uint64(bits.OnesCount64(have&(1<<bit-1)))
		end := table + entry*uint64(bits.OnesCount64(have))
		copy(b[at:end], b[at+entry:end])
		have &^= 1 << bit
	}
	le.PutUint64(b[bitsAt:], have)
}

// The features of a perf.data file with BPF programs.
const (
	featureProgInfo = 25
	featureBTF      = 26
)

// cmdCutNames is `cutnames FROM TO`: copies a perf.data file as if its BPF programs had been loaded
// without BTF: the kernel names a program by 15 bytes then, and all subprograms F.
func cmdCutNames(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cutnames FROM TO")
	}
	const (
		dataAt       = 40 // in struct perf_file_header
		ksymbol      = 17
		finishedInit = 82 // stands where bytes are left over
		nameAt       = 24 // in a KSYMBOL record
		prefix       = len("bpf_prog_0123456789abcdef_")
	)
	b := []byte(ts.ReadFile(args[0]))
	dropFeatures(ts, args[0], b, featureBTF)
	le := binary.LittleEndian
	padded := func(name []byte) int { return (len(name) + 8) / 8 * 8 }
	at := int(le.Uint64(b[dataAt:]))
	for end := at + int(le.Uint64(b[dataAt+8:])); at < end; {
		size := int(le.Uint16(b[at+6:]))
		record := b[at : at+size]
		at += size
		if le.Uint32(record) != ksymbol || !bytes.HasPrefix(record[nameAt:], []byte("bpf_prog_")) {
			continue
		}
		name, _, _ := bytes.Cut(record[nameAt:], []byte{0})
		if len(name) <= prefix {
			continue
		}
		cut := append(slices.Clone(name[:prefix]), 'F')
		if name := name[prefix:]; strings.HasPrefix(string(name), "count_") ||
			string(name) == "tally_digits" { // a program
			cut = append(cut[:prefix], name[:min(len(name), 15)]...)
		}
		less := padded(name) - padded(cut)
		trailer := slices.Clone(record[nameAt+padded(name):])
		clear(record[nameAt:])
		copy(record[nameAt:], cut)
		copy(record[nameAt+padded(cut):], trailer)
		le.PutUint16(record[6:], uint16(size-less))
		if less > 0 {
			le.PutUint32(record[size-less:], finishedInit)
			le.PutUint16(record[size-less+6:], uint16(less))
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o644))
}

// cmdImageless is `imageless FROM TO`: copies a perf.data file without the data read of
// BPF programs (the features BPF_PROG_INFO and BPF_BTF). Their records stay.
func cmdImageless(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: imageless FROM TO")
	}
	b := []byte(ts.ReadFile(args[0]))
	dropFeatures(ts, args[0], b, featureBTF, featureProgInfo)
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
