package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"symbolize/fixtures/perfbuild"
)

// builtRuns is code that fixtures/branches/branches ran: the target of a branch, and the next branch.
var builtRuns = [...][2]uint64{{0x401060, 0x401081}, {0x401030, 0x401035}, {0x401100, 0x401104},
	{0x401110, 0x40111e}, {0x4010c1, 0x4010da}, {0x4010c1, 0x4010f7}, {0x4010dc, 0x4010f7}, {0x4010e0, 0x4010f7},
	{0x4010a8, 0x4010bf}, {0x40103a, 0x40103f}, {0x401083, 0x40109f}, {0x401083, 0x4010a6}, {0x401083, 0x4010bf}}

// builtIDs are the build IDs of three builds of that program.
var builtIDs = [...]byte{0xa1, 0xb2, 0xc3}

// cmdBuilds is `builds DIR N`: writes DIR/bin/BUILD/branches, three builds of one program with the same
// code, and DIR/night/BUILD/I.data, N recordings of one of them each, at one path. The recordings of the
// third build have no branch stacks, nor has every tenth of the others.
func cmdBuilds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: builds DIR N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	program, err := os.ReadFile(filepath.Join(ts.Getenv("FIXTURES"), "branches", "branches"))
	ts.Check(err)
	id, err := hex.DecodeString("1b9c787c79bde3fb8f7c157dfae50bdaa01d5140")
	ts.Check(err)
	write := func(data []byte, path ...string) {
		name := filepath.Join(append([]string{ts.MkAbs(args[0])}, path...)...)
		ts.Check(os.MkdirAll(filepath.Dir(name), 0o755))
		ts.Check(os.WriteFile(name, data, 0o644))
	}
	for _, b := range builtIDs {
		other := bytes.Repeat([]byte{b}, len(id))
		write(bytes.Replace(program, id, other, 1), "bin", fmt.Sprintf("%x", b), "branches")
	}
	for i := range n {
		b := i % len(builtIDs)
		stacks := b < 2 && i%10 != 0
		write(builtRecording(i, builtIDs[b], stacks), "night", fmt.Sprintf("%x", builtIDs[b]), fmt.Sprint(i, ".data"))
	}
}

// builtRecording is a recording of one build with random branches.
func builtRecording(number int, build byte, stacks bool) []byte {
	rng := rand.New(rand.NewPCG(uint64(number), 1))
	f := perfbuild.New()
	if stacks {
		f.Events[0].SampleType |= perfbuild.BranchStack
		f.Events[0].BranchSampleType = 1<<0 | 1<<3 // user, any
	}
	f.Comm(7, 7, "branches", true, perfbuild.At{})
	f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x401000, Len: 0x1000, PgOff: 0x1000, BuildID: bytes.Repeat([]byte{build}, 20),
		Filename: "/srv/app/bin/branches"}, perfbuild.At{})
	for i := range uint64(20 + number%7) {
		s := perfbuild.Sample{PID: 7, Time: 1 + i, IP: builtRuns[rng.IntN(len(builtRuns))][0]}
		for range rng.IntN(16) {
			from, to := builtRuns[rng.IntN(len(builtRuns))][1], builtRuns[rng.IntN(len(builtRuns))][0]
			if stacks {
				s.Branches = append(s.Branches, perfbuild.Branch{From: from, To: to, Flags: 2})
			}
		}
		f.Sample(s)
	}
	return f.Bytes()
}

// cmdResolveAll is `resolve-all DIR ARG…`: runs `symbolize resolve ARG… FILE…` with all files of a directory.
func cmdResolveAll(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: resolve-all DIR ARG…")
	}
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*"))
	ts.Check(err)
	ts.Check(ts.Exec("symbolize", slices.Concat([]string{"resolve", "-q"}, args[1:], files)...))
}
