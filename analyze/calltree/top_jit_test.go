package calltree

import (
	"fmt"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// TestTopLoads: a BPF function with loads that are several objects is one row; methods of one name
// that two virtual machines compiled are two.
func TestTopLoads(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock(), ingest.Event{Name: "cpu", Unit: "ns"})
	for i, name := range []string{"bpf_prog_0102030405060708_mix", "bpf_prog_0102030405060708_mix",
		"bpf_prog_1112131415161718_mix", "run", "run"} {
		o := b.Object(ingest.Object{Kind: ingest.JIT, File: ingest.FileRef{Path: name},
			ID: buildid.Make(buildid.JIT, []byte(strings.Repeat(string(rune('a'+i)), 20)))})
		at := profilebuild.Place{Object: o, Offset: addr.Offset(4)}
		b.Name(at, 4, profilebuild.Frame{Name: name})
		b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: uint64(10 + i),
			Stack: []profilebuild.Place{at, at}})
	}
	var got []string
	for _, r := range NewTop(b.Profile(), TopOptions{}).Rows {
		got = append(got, fmt.Sprint(r.Name, " ", r.Flat, " ", r.Cum))
	}
	const want = "bpf_prog_0102030405060708_mix 21 21, run 14 14, run 13 13, " +
		"bpf_prog_1112131415161718_mix 12 12"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("%s, want %s", text, want)
	}
}
