package main

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"symbolize/fixtures/perfbuild"
)

// recordings are perf.data files that scripts ask for by name.
var recordings = map[string]func() []byte{
	"contained": containedRecording,
	"branches":  branchRecording,
	"loop":      loopRecording,
	"memory":    func() []byte { return memoryRecording(false) },
	"heap":      func() []byte { return memoryRecording(true) },
	"alloc":     func() []byte { return allocRecording(false) },
	"allocsite": func() []byte { return allocRecording(true) },
	"bpfoutput": bpfOutputRecording,
	"lost":      lostRecording,
	"arm64":     arm64Recording,
}

// cmdPerfdata is `perfdata NAME FILE`: writes one of recordings.
func cmdPerfdata(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || recordings[args[0]] == nil {
		ts.Fatalf("usage: perfdata NAME FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), recordings[args[0]](), 0o644))
}

// lostRecording lost 8 records, which are noted twice.
func lostRecording() []byte {
	b := perfbuild.New()
	b.Comm(7, 7, "app", true, perfbuild.At{})
	b.Lost(11, 8, perfbuild.At{Time: 1})
	for i := range uint64(92) {
		b.Sample(perfbuild.Sample{PID: 7, Time: 2 + i, Chain: []uint64{perfbuild.ContextUser, 0x400010}})
	}
	b.LostSamples(8, false, perfbuild.At{ID: 11})
	return b.Bytes()
}

// arm64Recording has samples of fixtures/types/access-arm64: one of each instruction that gcc has a member for,
// and one of each that follows it.
func arm64Recording() []byte {
	const at = 0xaaaac0000000
	text, err := os.ReadFile("../../fixtures/types/access-arm64.truth")
	id, err2 := hex.DecodeString("c67627054acc48cc224b511cdd74f5d7fb6e043e")
	if err := cmp.Or(err, err2); err != nil {
		panic(err)
	}
	b := perfbuild.New()
	b.FeatureString(perfbuild.FeatureArch, "aarch64")
	b.Comm(7, 7, "access-arm64", true, perfbuild.At{})
	b.Mmap2(perfbuild.Mmap{PID: 7, Addr: at, Len: 0x1000, BuildID: id, Filename: "/srv/arm64/access-arm64"}, perfbuild.At{})
	for line := range strings.Lines(string(text)) {
		var off uint64
		if _, err := fmt.Sscanf(line, "%x", &off); err != nil {
			panic(err)
		}
		for i := range uint64(2) {
			b.Sample(perfbuild.Sample{PID: 7, Time: 1 + off + i, Period: 1e6,
				Chain: []uint64{perfbuild.ContextUser, at + off + 4*i}})
		}
	}
	return b.Bytes()
}

// containedRecording has samples of two control groups, threads, CPUs and of four seconds.
func containedRecording() []byte {
	b := perfbuild.New()
	b.Events[0].SampleType |= perfbuild.Cgroup | perfbuild.CPU
	b.Events[0].Flags |= perfbuild.Namespaces
	for i, path := range []string{"/web/docker-" + "0123456789abcdef0123456789abcdef" +
		"0123456789abcdef0123456789abcdef.scope", "/batch"} {
		tid := int32(7 + i)
		b.Cgroup(uint64(i)+1, path, perfbuild.At{})
		b.Comm(7, tid, "worker", false, perfbuild.At{})
		b.Namespaces(7, tid, [][2]uint64{{4, 4026531840}, {4, 4026531838 + uint64(i)}}, perfbuild.At{})
		for k := range uint64(3 + i) {
			b.Sample(perfbuild.Sample{PID: 7, TID: tid, Time: k * 1e9, CPU: uint32(k), Period: 1e6,
				Cgroup: uint64(i) + 1, Chain: []uint64{perfbuild.ContextUser, 0x400010}})
		}
	}
	return b.Bytes()
}

// branchRecording has branches in a program that is not there, and in the kernel.
func branchRecording() []byte {
	b := perfbuild.New()
	b.Events[0].SampleType |= perfbuild.BranchStack
	b.Events[0].BranchSampleType = 1 << 3 // any
	const text = 0xffffffff81000000
	b.KernelMap("_text", text, text, 0x1000000)
	b.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x400000, Len: 0x1000, Filename: "/bin/x"}, perfbuild.At{})
	for i := range uint64(4) {
		b.Sample(perfbuild.Sample{PID: 7, Time: i, Chain: []uint64{perfbuild.ContextUser, 0x400010},
			Branches: []perfbuild.Branch{{From: 0x400010, To: 0x400020, Flags: 2 - i&1},
				{From: 0x400024, To: text + 16*i/3, Flags: 2}}})
	}
	return b.Bytes()
}

// loopRecording has the branches of a loop, which a call out of the kernel entered.
func loopRecording() []byte {
	b := perfbuild.New()
	b.Events[0].SampleType |= perfbuild.BranchStack
	b.Events[0].BranchSampleType = 1 << 3 // any
	b.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x400000, Len: 0x1000, PgOff: 0x2000, Filename: "/bin/x"},
		perfbuild.At{})
	for i := range uint64(4) {
		loop := perfbuild.Branch{From: 0x400040, To: 0x400010, Flags: 2}
		b.Sample(perfbuild.Sample{PID: 7, Time: i, IP: 0x400018 + i/3, Branches: []perfbuild.Branch{loop, loop,
			{From: 0xffffffff81000000, To: 0x40000c}, {From: 0x400100, To: 0xffffffff81000800},
			{From: 0x400020, To: 0x4000f0}, {From: 0x400008, To: 0x400030}}})
	}
	return b.Bytes()
}

// bpfOutputRecording has samples that BPF programs wrote: a string, and bytes.
func bpfOutputRecording() []byte {
	b := perfbuild.New()
	b.Events[0] = perfbuild.Event{Type: 1, Config: 10, Period: 1, IDs: []uint64{11},
		SampleType: perfbuild.IP | perfbuild.TID | perfbuild.Time | perfbuild.Raw,
		Flags:      perfbuild.SampleIDAll, Name: "evt"}
	b.EventDesc()
	for i, raw := range []string{"Raise a BPF event!\x00\x00", "\x01\x02\xffabc\x00\x00\x00\x00\x00d"} {
		b.Sample(perfbuild.Sample{PID: 7, Time: uint64(i), IP: 0x400010, Raw: []byte(raw)})
	}
	return b.Bytes()
}

// memoryRecording has samples of loads in fixtures/types/access with what `perf mem record` records. With heap the last
// one has an instruction that accesses a global variable, and an address in the heap.
func memoryRecording(heap bool) []byte {
	b := perfbuild.New()
	b.Events[0] = perfbuild.Event{Type: 4, Config: 0x1cd, Period: 1, IDs: []uint64{11}, Name: "cpu/mem-loads,ldlat=30/P",
		SampleType: perfbuild.IP | perfbuild.TID | perfbuild.Time | perfbuild.Addr | perfbuild.Weight | perfbuild.DataSrc,
		Flags:      perfbuild.SampleIDAll | perfbuild.Precise2}
	b.EventDesc()
	id, _ := hex.DecodeString("d89df4722da1014973d867a07b433347bf77e002")
	const data, code = perfbuild.User | 1<<13, perfbuild.User
	for _, m := range []perfbuild.Mmap{
		{Addr: 0x400000, Len: 0x2000, BuildID: id, Filename: "/srv/app/access", Misc: code},
		{Addr: 0x401000, Len: 0x1000, PgOff: 0x1000, Prot: 3, BuildID: id, Filename: "/srv/app/access", Misc: data},
		{Addr: 0x402000, Len: 0x2000, Prot: 3, Filename: "//anon", Misc: data},
		{Addr: 0x500000, Len: 0x9000, Prot: 3, Filename: "[heap]", Misc: data},
	} {
		m.PID = 7
		b.Mmap2(m, perfbuild.At{PID: 7, TID: 7})
	}
	const l1, l2, lfb, ram = 1<<33 | 2<<5, 2<<33 | 2<<5, 12<<33 | 2<<5, 13<<33 | 2<<5
	const price, next, best, books = 0x40098f, 0x400997, 0x400811, 0x402080
	for i, s := range []perfbuild.Sample{
		{IP: price, Addr: 0x500008, DataSrc: l1, Weight: 4}, {IP: price, Addr: 0x500028, DataSrc: l1, Weight: 5},
		{IP: price, Addr: 0x500048, DataSrc: ram, Weight: 300}, {IP: next, Addr: 0x500000, DataSrc: lfb, Weight: 40},
		{IP: next, Addr: 0x500020, Weight: 31}, {IP: best, Addr: books + 3208, DataSrc: l2, Weight: 14},
		{IP: best, Addr: books + 3216, DataSrc: l2, Weight: 16}, {IP: best, Addr: 0x500040},
	} {
		if s.Addr == 0x500040 && !heap {
			continue
		}
		s.PID, s.Time = 7, uint64(i+1)
		b.Sample(s)
	}
	return b.Bytes()
}

// allocRecording has samples of a tracepoint, with its fields. The kernel is mapped if kernel is set.
func allocRecording(kernel bool) []byte {
	b := perfbuild.New()
	if kernel {
		id, _ := hex.DecodeString("0123456789abcdef0123456789abcdef01234567")
		b.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		b.BuildIDs(perfbuild.BuildIDEntry{ID: id, Filename: "[kernel.kallsyms]", Misc: perfbuild.Kernel})
	}
	b.Events[0] = perfbuild.Event{Type: 2, Config: 658, Period: 1, IDs: []uint64{11},
		SampleType: perfbuild.IP | perfbuild.TID | perfbuild.Time | perfbuild.Raw,
		Flags:      perfbuild.SampleIDAll, Name: "kmem:kmalloc"}
	b.EventDesc()
	b.TracingData("kmem", perfbuild.AllocFormat)
	for i := range uint64(4) {
		b.Sample(perfbuild.Sample{PID: 7, Time: i, IP: 0x400010,
			Raw: b.AllocRaw(0xffffffff81000000+i/2, 1024*i, int32(i%2), "ab")})
	}
	return b.Bytes()
}
