package main

import (
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"symbolize/fixtures/bundlebuild"
	"symbolize/ingest/bpf"
	"symbolize/ingest/bundle"
)

// recordingLacks are the words of cmdRecording.
var recordingLacks = map[string]int{
	"info": bundlebuild.NoInfo, "symbols": bundlebuild.NoSymbols, "kernel": bundlebuild.NoKernel,
	"process": bundlebuild.NoProcess,
}

// cmdRecording is `recording FILE [WITHOUT…]`: writes the perf.data of the host of
// fixtures/bundlebuild, which lacks some things.
func cmdRecording(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: recording FILE [info] [symbols] [kernel] [process]")
	}
	lacks := 0
	for _, a := range args[1:] {
		bit, ok := recordingLacks[a]
		if !ok {
			ts.Fatalf("recording: nothing is called %q", a)
		}
		lacks |= bit
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bundlebuild.NewHost().PerfData(lacks), 0o644))
}

// cmdBundle is `bundle FILE [other-boot|later|dump|unread]`: writes the packed bundle of
// the same host, of another boot of it, of a later time, with a map's dump in it, or of
// a recorder that could not read the first program and another one of before.
func cmdBundle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: bundle FILE [other-boot|later|dump|unread]")
	}
	h := bundlebuild.NewHost()
	what := ""
	if len(args) == 2 {
		what = args[1]
	}
	switch what {
	case "other-boot":
		h.Text += 0x200000
	case "later":
		const second = 1_000_000_000
		h.Shift = 60 * second
	case "unread":
		h.Unread = map[uint32]string{h.A.ID: bpf.MissingGone, 7: "too many open files"}
	case "dump":
		dump, err := bundle.AppendDump(nil, bundle.DumpHeader{MapID: 3, Type: 5, KeySize: 4,
			ValueSize: 8, CPUs: 2, Name: "counts", Lost: map[string]uint64{"map full": 7}},
			[][2][]byte{{make([]byte, 4), make([]byte, 16)}})
		ts.Check(err)
		h.Entries = map[string][]byte{bundle.DumpName("counts"): dump}
	}
	if what == "stacks" { // those that `stacks load` unpacked
		h.Entries = map[string][]byte{
			bundle.DumpName("stacks"): []byte(ts.ReadFile("load/stacks.raw")),
			bundle.DumpName("counts"): []byte(ts.ReadFile("load/bare.raw")),
		}
	}
	ts.Check(packBundle(ts.MkAbs(args[0]), h.Bundle()))
}

// packBundle writes what is in a plain bundle as `capture` does.
func packBundle(path string, plain []byte) error {
	b, err := bundle.Open(path, strings.NewReader(string(plain)), int64(len(plain)))
	if err != nil {
		return err
	}
	defer b.Close()
	w, err := bundle.Create(path)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, name := range b.Names() {
		data, err := b.ReadEntry(name, 1<<20)
		if err != nil {
			return err
		}
		if err := w.Add(name, data); err != nil {
			return err
		}
	}
	return w.Commit(&b.Manifest)
}
