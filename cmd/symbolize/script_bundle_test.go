package main

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/bpf"
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

// cmdBundle is `bundle FILE
// [other-boot|later|dump|unread|maps|cut-names|costs|no-costs|bad-costs]`: writes the packed
// bundle of the same host, of another boot of it, of a later time, with dumps of maps in it, of a
// recorder that could not read the first program and another one of before, or with how programs
// were used.
func cmdBundle(ts *testscript.TestScript, neg bool, args []string) {
	remembers := len(args) == 3 && args[1] == "remembers"
	if neg || len(args) < 1 || len(args) > 2 && !remembers {
		ts.Fatalf("usage: bundle FILE [other-boot|later|dump|unread|maps|cut-names|costs|no-costs|bad-costs|" +
			"remembers RECORDING]")
	}
	h := bundlebuild.NewHost()
	what := ""
	if len(args) == 2 {
		what = args[1]
	}
	if remembers {
		r, _, ok := bundle.RecordingAt(ts.MkAbs(args[2]))
		if !ok {
			ts.Fatalf("%s is no recording", args[2])
		}
		h.Manifest = map[string]any{"recordings": []bundle.Recording{r}}
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
		dump, err := rawdump.Append(nil, rawdump.Header{MapID: 3, Type: 5, KeySize: 4,
			ValueSize: 8, CPUs: 2, Name: "counts", Lost: map[string]uint64{"map full": 7}},
			[][2][]byte{{make([]byte, 4), make([]byte, 16)}})
		ts.Check(err)
		h.Entries = map[string][]byte{bundle.DumpName("counts"): dump}
	}
	if what == "costs" || what == "no-costs" {
		ts.Check(addCosts(h, what == "costs"))
	}
	if name := bundle.BPFStatsName; what == "bad-costs" {
		ts.Check(addCosts(h, true))
		h.Entries[name] = h.Entries[name][:len(h.Entries[name])/2]
	}
	if what == "maps" {
		ts.Check(addMaps(h))
	}
	if what == "cut-names" {
		ts.Check(addCutNames(h))
	}
	if what == "stacks" { // unpacked by `stacks load`
		h.Entries = map[string][]byte{
			bundle.DumpName("stacks"): []byte(ts.ReadFile("load/stacks.raw")),
			bundle.DumpName("counts"): []byte(ts.ReadFile("load/bare.raw")),
		}
	}
	ts.Check(packBundle(ts.MkAbs(args[0]), h.Bundle()))
}

// addCosts adds how the programs were used, with or without their runs counted.
func addCosts(h *bundlebuild.Host, counted bool) error {
	l := &bpf.Stats{Lost: 2, Programs: []bpf.ProgramStats{
		{ID: 42, Tag: "b0b0b0b0b0b0b0b0", Name: "on_write", Type: 17, Runs: 7, RunTime: 800,
			Maps: []bpf.MapStats{{ID: 9, Name: "<script>alert(1)</script>\x1b[31m"}}},
		{ID: 41, Tag: "a0a0a0a0a0a0a0a0", Name: "on_sys_enter", Type: 17, UID: 5, Gone: true,
			Runs: 1_234_567, RunTime: 400_000_000, Missed: 1,
			Maps: []bpf.MapStats{{ID: 3, Name: "counts", Type: 5}, {ID: 4, Type: 27}}},
	}}
	if counted {
		l.Begin, l.End = bundlebuild.Begin+h.Boottime, bundlebuild.EndOfAll+h.Boottime
	} else {
		for i := range l.Programs {
			l.Programs[i].Runs, l.Programs[i].RunTime, l.Programs[i].Missed = 0, 0, 0
		}
	}
	data, err := bpf.EncodeStats(l)
	h.Entries = map[string][]byte{bundle.BPFStatsName: data}
	return err
}

// addMaps adds the dumps of `capture --maps` of two maps: of one by code address, and three
// dumps of a histogram, of which the last was made after it had been cleared.
func addMaps(h *bundlebuild.Host) error {
	h.Entries = make(map[string][]byte)
	le := binary.LittleEndian
	add := func(d rawdump.Header, n int, pairs [][2][]byte) error {
		dump, err := rawdump.Append(nil, d, pairs)
		h.Entries[bundle.SeriesName(d.Name, d.MapID, n)] = dump
		return err
	}
	var pairs [][2][]byte
	for at, n := range map[uint64]uint64{h.Text + bundlebuild.DoWork + 0x12: 900,
		bundlebuild.SlotSub + 0x14: 40, bundlebuild.Module + 0x20: 7, 0xffffffffff000000: 1} {
		pairs = append(pairs, [2][]byte{le.AppendUint64(nil, at), le.AppendUint64(nil, n)})
	}
	err := add(rawdump.Header{MapID: 11, Type: 1, KeySize: 8, ValueSize: 8, Name: "by_address"}, 1,
		pairs)
	for i, counts := range [][]uint64{{0, 0, 5, 8}, {0, 0, 6, 40, 0, 1}, {0, 0, 0, 3}} {
		pairs = nil
		for slot, n := range counts {
			value := le.AppendUint64(le.AppendUint64(nil, n), n/2) // of two CPUs
			pairs = append(pairs, [2][]byte{le.AppendUint32(nil, uint32(slot)), value})
		}
		err = errors.Join(err, add(rawdump.Header{MapID: 12, Type: 6, KeySize: 4, ValueSize: 8, CPUs: 2,
			Name: "latency", Time: h.Monotonic + uint64(i)*500_000_000}, i+1, pairs))
	}
	return err
}

// addCutNames adds dumps of three maps with the same name in the kernel, which cuts names.
func addCutNames(h *bundlebuild.Host) error {
	h.Entries = make(map[string][]byte)
	var errs []error
	for i, keySize := range []uint32{4, 4, 8} {
		d := rawdump.Header{MapID: uint32(21 + i), Type: 1, KeySize: keySize, ValueSize: 8,
			Name: "request_latency"}
		dump, err := rawdump.Append(nil, d, [][2][]byte{{make([]byte, keySize),
			{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}})
		h.Entries[bundle.SeriesName(d.Name, d.MapID, 1)] = dump
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// cmdUnpack is `unpack BUNDLE TAR`: writes a bundle as a plain tar, its entries by their names.
func cmdUnpack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unpack BUNDLE TAR")
	}
	packed := ts.ReadFile(args[0])
	b, err := bundle.Open(args[0], strings.NewReader(packed), int64(len(packed)))
	ts.Check(err)
	defer b.Close()
	entries := make(map[string][]byte)
	for _, name := range b.Names() {
		entries[name], err = b.ReadEntry(name, 1<<20)
		ts.Check(err)
	}
	manifest, err := bundle.EncodeManifest(&b.Manifest)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), bundlebuild.Tar(manifest, entries), 0o644))
}

// cmdPack is `pack gzip|xz|zstd FILE OUT`: packs a file.
func cmdPack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: pack gzip|xz|zstd FILE OUT")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), elfbuild.Pack(args[0], []byte(ts.ReadFile(args[1]))), 0o644))
}

// packBundle packs a plain bundle as `capture` does.
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
