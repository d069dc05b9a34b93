package calltree

import (
	"fmt"
	"strings"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// TestJITObjects: compiled code is shown by the program of its process, otherwise by the threads
// that run it; several processes of one program have their numbers.
func TestJITObjects(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock())
	for i, c := range []struct {
		kind    ingest.ObjectKind
		program string
		pid     int32
		comms   []string
	}{
		{ingest.PerfMap, "/usr/bin/node", 7, []string{"worker"}},
		{ingest.JITDump, "/usr/bin/node", 7, []string{"worker"}},
		{ingest.PerfMap, "/opt/java", 8, []string{"http"}},
		{ingest.PerfMap, "/opt/java", 9, []string{"http"}},
		{ingest.PerfMap, "", 10, []string{"a", "b", "b"}},
		{ingest.ELF, "", 0, []string{"c"}},
	} {
		o := b.Object(ingest.Object{Kind: c.kind, Program: c.program, PID: c.pid,
			File: ingest.FileRef{Path: fmt.Sprint("/tmp/", i)}})
		at := profilebuild.Place{Object: o, Offset: addr.Offset(4)}
		b.Name(at, 4, profilebuild.Frame{Name: fmt.Sprint("f", i)})
		for _, comm := range c.comms {
			b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Comm: comm, Count: 1, Weight: 1,
				Stack: []profilebuild.Place{at, at}})
		}
	}
	var got []string
	top := NewTop(b.Profile(), TopOptions{})
	for i := range 6 {
		for _, r := range top.Rows {
			if r.Name == fmt.Sprint("f", i) {
				got = append(got, r.Object)
			}
		}
	}
	const want = "[jit] node, [jit] node, [jit] java 8, [jit] java 9, [jit] b, /tmp/5"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("%s, want %s", text, want)
	}
	got = nil
	for _, r := range NewTop(b.Profile(), TopOptions{Options: Options{By: []By{Object}}}).Rows {
		got = append(got, fmt.Sprint(r.Name, " ", r.Flat))
	}
	const objects = "[jit] b 3, [jit] node 2, /tmp/5 1, [jit] java 8 1, [jit] java 9 1"
	if text := strings.Join(got, ", "); text != objects {
		t.Errorf("by object: %s, want %s", text, objects)
	}
}
