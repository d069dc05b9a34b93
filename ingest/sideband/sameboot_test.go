package sideband

import (
	"bytes"
	"fmt"
	"testing"

	"symbolize/fixtures/bundlebuild"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
)

// TestReferenceSymbol compares kernels by another reference symbol than _text.
func TestReferenceSymbol(t *testing.T) {
	h := bundlebuild.NewHost()
	data := h.Bundle()
	b, err := bundle.Open("b", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, size, err := b.Entry(bundle.PerfDataName)
	if err != nil {
		t.Fatal(err)
	}
	f, err := perfdata.Open("b", r, size)
	if err != nil {
		t.Fatal(err)
	}
	l := bootBundle{Bundle: b, records: f}
	for name, want := range map[string]uint64{"_text": h.Text, "do_work": h.Text +
		bundlebuild.DoWork,
		"": 0, "mod_work": 0, "nowhere": 0} {
		if got := l.symbol(name); got != want {
			t.Errorf("%q at %#x, want %#x", name, got, want)
		}
	}
}

func TestParseMapsLine(t *testing.T) {
	for _, tt := range []struct {
		line, want string
		ok         bool
	}{
		{line: "00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a b",
			want: "400000+52000 1000 8:2 173521 /usr/bin/a b", ok: true},
		{line: "7f0000000000-7f0000001000 r-xp 00000000 00:00 0",
			want: "7f0000000000+1000 0 0:0 0 //anon", ok: true},
		{line: "7fff0-7fff1 r-xp 00000000 00:00 0                          [vdso]",
			want: "7fff0+1 0 0:0 0 [vdso]", ok: true},
		{line: "00400000-00452000 rw-p 00001000 08:02 173521 /usr/bin/a"},
		{line: "00452000-00400000 r-xp 00001000 08:02 173521 /usr/bin/a"},
		{line: "x-y r-xp 0 08:02 1 /a"},
		{line: "1-2 r-xp 0 0802 1 /a"},
		{line: "1-2 r-xp 0 08:02 inode /a"},
		{line: ""},
	} {
		m, ok := parseMapsLine(tt.line)
		got := fmt.Sprintf("%x+%x %x %x:%x %d %s", m.Addr, m.Len, m.PgOff, m.Maj, m.Min, m.Ino,
			m.Filename)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: %q, %v", tt.line, got, ok)
		}
	}
}
