package main

import (
	"crypto/sha1"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/advice"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/jitbuild"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
)

// The place of the program of these recordings.
const (
	againPath = "/nowhere/prog"
	againText = elfbuild.TextAddr // of its function work_of_prog
	againPID  = 7
)

var againID = []byte("the-id-of-that-prog-")

// againRecording is a recording of that program with samples of these chains.
func againRecording(chains ...[]uint64) []byte { return againRecordingOf(againPath, chains...) }

func againRecordingOf(path string, chains ...[]uint64) []byte {
	b := perfbuild.New()
	b.Comm(againPID, againPID, "prog", true, perfbuild.At{})
	b.Mmap2(perfbuild.Mmap{PID: againPID, Addr: againText, Len: 0x40000, PgOff: 0x1000, BuildID: againID,
		Filename: path}, perfbuild.At{PID: againPID})
	for i, chain := range chains {
		b.Sample(perfbuild.Sample{PID: againPID, Time: uint64(i), Chain: chain})
	}
	return b.Bytes()
}

// whole is the recording with a chain that is all named.
func whole(string) []byte {
	return againRecording([]uint64{perfbuild.ContextUser, againText + 8, againText + 0x101})
}

// movedRecording is a recording of movedProgram.
func movedRecording(string) []byte {
	b := perfbuild.New()
	b.Comm(againPID, againPID, "prog", true, perfbuild.At{})
	b.Mmap2(perfbuild.Mmap{PID: againPID, Addr: againText, Len: 0x1000, PgOff: 0x3000, BuildID: againID,
		Filename: againPath}, perfbuild.At{PID: againPID})
	b.Sample(perfbuild.Sample{PID: againPID, Chain: []uint64{perfbuild.ContextUser, againText + 8}})
	return b.Bytes()
}

// movedProgram is that program with its code two pages further in the file, at the same address.
func movedProgram() []byte {
	lib := elfbuild.Lib(againID, 0x400, elfbuild.Func{Name: "work_of_prog", Size: 0x400})
	lib.Sections = slices.Insert(lib.Sections, 0, elfbuild.Section{Name: ".moved", Data: make([]byte, 0x2000)})
	return lib.Bytes()
}

// memoryFile is a recording of a program that was executed from memory.
func memoryFile(id []byte) []byte {
	b := perfbuild.New()
	b.Comm(againPID, againPID, "prog", true, perfbuild.At{})
	b.Mmap2(perfbuild.Mmap{PID: againPID, Addr: againText, Len: 0x2000, PgOff: 0x1000, BuildID: id,
		Filename: "/memfd:sealed (deleted)"}, perfbuild.At{PID: againPID})
	b.Sample(perfbuild.Sample{PID: againPID, Chain: []uint64{perfbuild.ContextUser, againText + 8}})
	return b.Bytes()
}

// bareData is a recording with copies of the stack.
func bareData(fixtures string) []byte {
	b, err := os.ReadFile(filepath.Join(fixtures, "unwound", "bare.data"))
	if err != nil {
		panic(err)
	}
	return b
}

// counted is a bundle of one stack that `capture --stacks` counted: of one address, or of an error
// in place of the number of the stack.
func counted(stack int32, address uint64) []byte {
	frame := make([]byte, 32)
	frame[0] = 2 // an address
	binary.LittleEndian.PutUint64(frame[24:], address)
	key := binary.LittleEndian.AppendUint32(nil, uint32(stack))
	key = binary.LittleEndian.AppendUint32(key, againPID)
	add := func(h rawdump.Header, pairs ...[2][]byte) []byte {
		dump, err := rawdump.Append(nil, h, pairs)
		if err != nil {
			panic(err)
		}
		return dump
	}
	h := bundlebuild.NewHost()
	h.Entries = map[string][]byte{
		bundle.DumpName("stacks"): add(rawdump.Header{Type: 7, Flags: 1 << 5, KeySize: 4, ValueSize: 32,
			Depth: 1, Name: "stacks"}, [2][]byte{make([]byte, 4), frame}),
		bundle.DumpName("counts"): add(rawdump.Header{Type: 1, KeySize: 8, ValueSize: 8, Name: "counts"},
			[2][]byte{key, {1, 0, 0, 0, 0, 0, 0, 0}}),
	}
	h.Manifest = map[string]any{"samples": []bundle.Samples{{Event: "cpu-clock", Unit: "count", Period: 1,
		Stacks: bundle.DumpName("stacks"), Counts: bundle.DumpName("counts"),
		Key: "user_stack_id:0:4,tgid:4:4", Value: "0:8"}}}
	return h.Bundle()
}

// remapped is a recording of the program after it moved its code to a huge page.
func remapped(string) []byte {
	const huge = 2 << 20
	b := perfbuild.New()
	b.Comm(againPID, againPID, "prog", true, perfbuild.At{})
	b.Mmap2(perfbuild.Mmap{PID: againPID, Addr: againText &^ (huge - 1), Len: huge, BuildID: againID,
		Filename: againPath}, perfbuild.At{PID: againPID})
	b.Mmap2(perfbuild.Mmap{PID: againPID, Addr: againText &^ (huge - 1), Len: huge, Filename: "//anon"},
		perfbuild.At{PID: againPID})
	b.Sample(perfbuild.Sample{PID: againPID, Chain: []uint64{perfbuild.ContextUser, againText + 8}})
	return b.Bytes()
}

// again is a reason in a capture, and the capture that its hint has one make.
type again struct {
	reason ingest.Reason
	before func(fixtures string) []byte
	hint   string
	after  func(fixtures string) []byte
	args   []string // besides, with both
	more   []string // besides, with the one after
	step   []string // run before the one after
	named  string   // in the stacks after
}

// recordedAgain are the reasons that another recording does away with. Those of real recorders are
// in hintsLive.
var recordedAgain = []again{
	{reason: ingest.StackNotUnwound, hint: "perf record --call-graph fp", after: whole,
		before: func(string) []byte { // its chain was to come later, and did not
			return againRecording([]uint64{perfbuild.ContextDeferred, 12})
		},
		named: "prog;work_of_prog;work_of_prog"},
	{reason: ingest.GuestCode, hint: "inside the virtual machine: perf record -a -g", after: whole,
		before: func(string) []byte {
			return againRecording([]uint64{perfbuild.ContextGuestUser, 0x400010})
		},
		named: "prog;work_of_prog"},
	{reason: ingest.OutsideMapping, after: whole,
		hint: "code without frame pointers: gcc -fno-omit-frame-pointer, or perf record --call-graph dwarf",
		before: func(string) []byte {
			return againRecording([]uint64{perfbuild.ContextUser, againText + 8, 0x7f00_0000_1234})
		},
		named: "prog;work_of_prog;work_of_prog"},
	{reason: ingest.OutsideObject, after: whole, // in a mapping, and behind the code there
		hint: "code without frame pointers: gcc -fno-omit-frame-pointer, or perf record --call-graph dwarf",
		before: func(string) []byte {
			return againRecording([]uint64{perfbuild.ContextUser, againText + 8, againText + 0x3f001})
		},
		named: "prog;work_of_prog;work_of_prog"},
	{reason: ingest.KernelHidden,
		hint:   "as root: echo 0 > /proc/sys/kernel/kptr_restrict && perf record --buildid-mmap -a -g",
		before: func(string) []byte { return bundlebuild.NewHost().PerfData(bundlebuild.NoKernel) },
		after:  func(string) []byte { return bundlebuild.NewHost().PerfData(0) },
		args:   []string{"--kallsyms", "kallsyms"}, named: "do_work"},
	{reason: ingest.ImageNotCaptured, hint: "symbolize capture -o capture.data -- perf record -a -g",
		before: func(string) []byte { return bundlebuild.NewHost().PerfData(bundlebuild.NoInfo) },
		after:  func(string) []byte { return bundlebuild.NewHost().PerfData(bundlebuild.NoInfo) },
		more:   []string{"capture.data"}, named: "on_sys_enter"},
	{reason: ingest.AnonymousMemory,
		hint: "the program that makes this code has to list it: in /tmp/perf-PID.map, or in a jitdump " +
			"file with perf record -k mono",
		before: func(string) []byte { return jitbuild.Recording(false) },
		after:  func(string) []byte { return jitbuild.Recording(false) },
		more:   []string{"--perf-maps", "tmp"}, named: "beta of app.js:7"},
	{reason: ingest.TextRemapped, before: remapped, after: whole, hint: "code of prog was there: record without " +
		"moving it to huge pages (node --use-largepages=off, no iodlr)", named: "prog;work_of_prog;work_of_prog"},
	{reason: ingest.NoBuildID, hint: "perf record --buildid-mmap", after: whole,
		before: func(string) []byte { return bundlebuild.NewHost().PerfData(0) },
		args:   []string{"--kallsyms", "kallsyms"}, named: "prog;work_of_prog;work_of_prog"},
	{reason: ingest.NoUnwindTable, hint: "symbolize index /srv/app/bin/bare",
		before: bareData, after: bareData, step: []string{"index", "FIXTURES/unwound/bare"},
		named: "bare;_start;start;work;aligned;spin"},
	{reason: ingest.OtherLayout, hint: "symbolize index " + againPath, before: movedRecording,
		after: movedRecording, step: []string{"index", "moved/prog"}, named: "prog;work_of_prog"},
	{reason: ingest.MapsNotSaved, hint: "symbolize resolve --maps PID=/proc/PID/maps a.data",
		before: func(string) []byte { return counted(0, againText+8) },
		after:  func(string) []byte { return counted(0, againText+8) },
		args:   []string{"--trust-paths"}, more: []string{"--maps", "7=maps"}, named: "work_of_prog"},
	{reason: ingest.AnonymousMemory, hint: "perf record --buildid-mmap", // an executed memory file
		before: func(string) []byte { return memoryFile(nil) },
		after:  func(string) []byte { return memoryFile(againID) }, named: "prog;work_of_prog"},
	{reason: ingest.ProcessGone, hint: "perf record --buildid-mmap -a -g", after: whole,
		before: func(string) []byte { return counted(0, bundle.GoneAddress) },
		named:  "work_of_prog"},
	{reason: ingest.MapsNotRead, hint: "perf record --buildid-mmap -a -g", after: whole,
		before: func(string) []byte { return counted(0, bundle.UnreadAddress) },
		named:  "work_of_prog"},
	{reason: ingest.AddressReused, hint: "perf record --buildid-mmap -a -g", after: whole,
		before: func(string) []byte { return counted(0, bundle.AmbiguousAddress) },
		named:  "work_of_prog"},
	{reason: ingest.StackLost, hint: "perf record --buildid-mmap -a -g", after: whole,
		before: func(string) []byte { return counted(-17, 0) }, // EEXIST
		named:  "work_of_prog"},
}

// TestEveryHintFollowed: each reason with a hint has a test in which the hint is followed, here, in
// the script that runs the hints of captures, or in a test of its own.
func TestEveryHintFollowed(t *testing.T) {
	script := must.Read(t, "testdata/script/missing-followed.txtar")
	alone := map[ingest.Reason]func(*testing.T){
		ingest.Ambiguous: TestAmbiguousFollowed, ingest.TableDamaged: TestTableDamagedFollowed}
	for why := ingest.NotIndexed; why.String() != "unknown reason"; why++ {
		followed := alone[why] != nil ||
			slices.ContainsFunc(recordedAgain, func(a again) bool { return a.reason == why }) ||
			slices.ContainsFunc(hintsLive, func(l hintLive) bool { return l.reason == why }) ||
			strings.Contains(string(script), "follow '"+why.String()+"'")
		c := advice.Case{Reason: why, Object: &ingest.Object{ID: buildid.New(againID),
			File: ingest.FileRef{Path: againPath}}}
		if hinted := c.Step() != ""; hinted != followed {
			t.Errorf("%s: a hint: %t, a test that follows it: %t", why, hinted, followed)
		}
	}
}

// TestRecordedAgain: the reason and its hint are there, and after what the hint advises the reason
// is gone and the code has names.
func TestRecordedAgain(t *testing.T) {
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	lib := elfbuild.Lib(againID, 0x400, elfbuild.Func{Name: "work_of_prog", Size: 0x400})
	written := map[string][]byte{"prog": lib.Bytes(), "capture.data": bundlebuild.NewHost().Bundle(),
		"kallsyms": []byte("ffffffff81000000 T _text\nffffffff81000140 T do_work\nffffffff81001000 T last\n"),
		"maps": fmt.Appendf(nil, "%x-%x r-xp 00001000 08:01 99 %s\n", againText, againText+0x40000,
			filepath.Join(dir, "prog")),
		filepath.Join("tmp", "perf-77.map"): []byte(jitbuild.Map),
		filepath.Join("moved", "prog"):      movedProgram()}
	for name, b := range written {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		must.Write(t, name, b)
	}
	hintCall(t, "index", filepath.Join(dir, "prog"))
	for _, tt := range recordedAgain {
		t.Run(tt.reason.String(), func(t *testing.T) {
			must.Write(t, "a.data", tt.before(fixtures))
			must.Write(t, "b.data", tt.after(fixtures))
			hints := hintsOf(t, append(tt.args, "a.data")...)
			if got, ok := hints[tt.reason.String()]; !ok || got != tt.hint {
				t.Errorf("before: %q, want %q", hints, tt.hint)
			}
			with := slices.Concat(tt.args, tt.more, []string{"b.data"})
			for i, arg := range tt.step {
				tt.step[i] = strings.Replace(arg, "FIXTURES", fixtures, 1)
			}
			if tt.step != nil {
				hintCall(t, tt.step...)
			}
			if hints = hintsOf(t, with...); hints[tt.reason.String()] != "" {
				t.Errorf("after: %q", hints)
			}
			folded := hintCall(t, append([]string{"resolve", "--format", "folded"}, with...)...)
			if !strings.Contains(folded, tt.named) {
				t.Errorf("no %s after it:\n%s", tt.named, folded)
			}
		})
	}
}

// TestTableDamagedFollowed: a disk changes a bit of a table, which is found when it is read; the
// hint has it made anew.
func TestTableDamagedFollowed(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	lib := elfbuild.Lib(againID, 0x40000)
	for i := range 4096 { // so many names that the table is no small value
		name := fmt.Sprintf("work_of_%x", sha1.Sum([]byte{byte(i), byte(i >> 8)}))
		lib.Symbols = append(lib.Symbols, elfbuild.Symbol{Name: name, Section: ".text", Size: 0x40,
			Value: elfbuild.TextAddr + uint64(0x40*i), Type: elf.STT_FUNC, Bind: elf.STB_GLOBAL})
	}
	path := filepath.Join(dir, "prog")
	must.Write(t, path, lib.Bytes())
	if err := os.WriteFile("a.data", againRecordingOf(path, []uint64{perfbuild.ContextUser,
		againText + 8, againText + 0x2101}), 0o644); err != nil {
		t.Fatal(err)
	}
	hintCall(t, "index", path)
	logs, err := filepath.Glob("store/inputs/*")
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, log := range logs {
		b := must.Read(t, log)
		for i := 512; i < len(b); i += 512 { // in the one part of it that is read, too
			b[i] ^= 0x10
		}
		if err := os.WriteFile(log, b, 0o644); err != nil { // all links of it, as a disk would
			t.Fatal(err)
		}
	}
	hint := hintsOf(t, "a.data")[ingest.TableDamaged.String()]
	if hint != "symbolize store gc && symbolize index "+path {
		t.Fatalf("hint %q", hint)
	}
	for step := range strings.SplitSeq(hint, " && ") {
		hintCall(t, strings.Fields(step)[1:]...)
	}
	if hints := hintsOf(t, "a.data"); len(hints) > 0 {
		t.Errorf("after it: %q", hints)
	}
	folded := hintCall(t, "resolve", "--format", "folded", "a.data")
	if strings.Count(folded, "work_of_") != 2 {
		t.Errorf("after it: %s", folded)
	}
}

// hintCall runs a command line on the store of the directory.
func hintCall(t *testing.T, args ...string) string {
	t.Helper()
	env, stdout, stderr := inProcess(append([]string{"--store", "store", "-q"}, args...)...)
	if code := Main(t.Context(), env); code != cli.OK && code != cli.Partial {
		t.Fatalf("%v: status %d: %s", args, code, stderr)
	}
	return stdout.String()
}

// hintsOf returns the hints of captures by their reasons.
func hintsOf(t *testing.T, captures ...string) map[string]string {
	t.Helper()
	var missing struct {
		Missing []struct{ Reason, Hint string }
	}
	text := hintCall(t, append([]string{"missing", "--format", "json"}, captures...)...)
	if err := json.Unmarshal([]byte(text), &missing); err != nil {
		t.Fatal(err)
	}
	hints := make(map[string]string)
	for _, m := range missing.Missing {
		hints[m.Reason] = m.Hint
	}
	return hints
}
