package filter

import (
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
	"symbolize/store"
	"symbolize/store/bpfprog"
)

// countTag is the tag of the program in bpfobj's count.bpf.o.
var countTag = [8]byte{0x91, 0x62, 0x1d, 0xb7, 0xa6, 0x4b, 0xdc, 0x62}

// addBuilt adds a program of 16 bytes to a view.
func addBuilt(t *testing.T, view store.View, p bpfbuild.Program) {
	t.Helper()
	p.Type, p.Funcs[0].Start = 17, 0xffffffffc0001000
	p.Funcs[0].Code = []byte(strings.Repeat("\x90", 16))
	info, blobs := bpfbuild.Sections(false, p)
	types, err := bpf.DecodeBTFs("test", blobs, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	programs, err := bpf.DecodePrograms("test", info, 0, false, types)
	if err != nil {
		t.Fatal(err)
	}
	_, err = bpfprog.Add(t.Context(), view.(*store.Overlay),
		bpfprog.CaptureInfo{Machine: "x86_64"}, programs)
	if err != nil {
		t.Fatal(err)
	}
}

// TestLineless: a program that was captured without lines is not reported as missing. Where
// it is defined comes from an object file, and its lines from the one program with its
// name, tag and length that has some.
func TestLineless(t *testing.T) {
	view := newView(t)
	lineless := func(tag [8]byte, name string) bpfbuild.Program {
		return bpfbuild.Program{ID: 5, Name: name, Tag: tag, Funcs: []bpfbuild.Func{{Tag: tag}}}
	}
	lined := func(id, line uint32) bpfbuild.Program {
		p := lineless([8]byte{7}, "plain")
		p.ID, p.BTFID, p.Funcs[0].Name = id, id, "plain"
		p.Funcs[0].Lines = []bpfbuild.Line{{Line: line, File: "plain.c"},
			{At: 8, Line: line + 1, File: "plain.c"}}
		return p
	}
	check := func(in, source string, reason ingest.Reason, probable uint64) {
		t.Helper()
		want := in
		if source != "" {
			want += " (" + source + ")"
		}
		got, st := rewrite(t, view, Options{}, in)
		if got != want || st.Probable != probable {
			t.Errorf("%q, %d probably; not %q, %d", got, st.Probable, want, probable)
		}
		if reason == ingest.ReasonNone {
			return
		}
		hint := map[ingest.Reason]string{ingest.Stripped: "it was loaded without lines: ",
			ingest.Ambiguous: "different sources have this tag"}[reason]
		if len(st.Left) != 1 || st.Left[0].Reason != reason ||
			!strings.Contains(st.Left[0].Hint(), hint) {
			t.Errorf("%s: left %+v, hint %q", in, st.Left, st.Left[0].Hint())
		}
	}
	const plain = "RIP: 0010:bpf_prog_0700000000000000_plain+0x9/0x10"
	addBuilt(t, view, lineless([8]byte{7}, "plain"))
	check(plain, "", ingest.Stripped, 0)
	addBuilt(t, view, lineless(countTag, "count_system_ca"))
	const cut, rest = "bpf_prog_91621db7a64bdc62_count_system_ca", "lls_on_enter"
	if got, _ := rewrite(t, view, Options{}, cut+"+0x9/0x10"); got != cut+rest+
		"+0x9/0x10 (defined at /srv/app/src/count.bpf.c:41)" {
		t.Errorf("a cut name: %q", got)
	}
	addBuilt(t, view, lined(6, 20))
	check(plain, "plain.c:21", ingest.ReasonNone, 1)
	addBuilt(t, view, lined(7, 30)) // which of the two?
	check(plain, "", ingest.Ambiguous, 0)
	check("bpf_prog_0700000000000000_plain+0x9/0x999", "", ingest.Ambiguous, 0)
}
