//go:build unix

package main

import (
	"os"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"symbolize/buildid"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/object/elf"
)

// cmdCapture is `capture FILE PROGRAM HOST [BUILD-ID]`: writes a perf.data of one
// sample in the function main of PROGRAM, a copy of objects/bin/fixed, recorded on
// HOST; "here" is this one. Without a BUILD-ID the mapping has device and inode.
func cmdCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: capture FILE PROGRAM HOST [BUILD-ID]")
	}
	const (
		hostname = 3        // HEADER_HOSTNAME
		text     = 0x401000 // the address of the code, from offset 0x1000 of the file
		pid      = 7
	)
	program, host := ts.MkAbs(args[1]), args[2]
	if host == "here" {
		var err error
		host, err = os.Hostname()
		ts.Check(err)
	}
	mmap := perfbuild.Mmap{PID: pid, Addr: text, Len: 0x1000, PgOff: 0x1000, Filename: program}
	if len(args) == 4 {
		id, err := buildid.Parse(args[3])
		ts.Check(err)
		mmap.BuildID = id.Bytes()
	} else {
		fi, err := os.Stat(program)
		ts.Check(err)
		st := fi.Sys().(*syscall.Stat_t)
		mmap.Ino = st.Ino
		mmap.Maj, mmap.Min = deviceNumbers(uint64(st.Dev))
	}
	main := uint64(0)
	object := openObject(ts, program)
	ts.Check(object.Symbols(elf.Symtab, func(s elf.Symbol) bool {
		if s.Name == "main" {
			main = uint64(s.Addr)
		}
		return main == 0
	}))
	f := perfbuild.New()
	f.FeatureString(hostname, host)
	// Made at once, the file is like a copy, and has to have the time of the recording.
	f.ClockData(1, uint64(time.Now().UnixNano()), 3)
	f.Comm(pid, pid, "app", true, perfbuild.At{Time: 1})
	f.Mmap2(mmap, perfbuild.At{PID: pid, TID: pid, Time: 2})
	f.Sample(perfbuild.Sample{PID: pid, Time: 3, Chain: []uint64{perfbuild.ContextUser, main + 1}})
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), f.Bytes(), 0o644))
}

// deviceNumbers splits st_dev as the C library's major and minor do.
func deviceNumbers(dev uint64) (major, minor uint32) {
	major = uint32(dev>>8&0xfff | dev>>32&^0xfff)
	minor = uint32(dev&0xff | dev>>12&^0xff)
	return major, minor
}
