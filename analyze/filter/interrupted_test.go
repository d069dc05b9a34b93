package filter

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/storebuild"
	"symbolize/store/indexer"
)

// TestInterrupted: behind the code that a signal handler returns to is the interrupted place, here
// the first byte of a function that follows another without padding.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ids := make(map[string][]buildid.ID)
	for name, funcs := range map[string][]elfbuild.Func{
		"libc.so": {{Name: "raise", Size: 0x10}, {Name: "__restore_rt", Offset: 0x20, Size: 9}},
		"app": {{Name: "before", Size: 0x13}, {Name: "parse", Offset: 0x13, Size: 0x20},
			{Name: "main", Offset: 0x33, Size: 0x20}},
	} {
		id := []byte{1, 2, 3, 4, 5, 6, 7, byte(len(name))}
		ids[name] = []buildid.ID{buildid.New(id)}
		err := os.WriteFile(filepath.Join(dir, name), elfbuild.Lib(id, 0x1000, funcs...).Bytes(), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	overlay := storebuild.Overlay(t, indexer.Options{}, dir)
	opts := Options{Files: func(name string) []buildid.ID { return ids[name] }}
	const first = "app(+0x401045)[0x1045] main+0x12\n"
	for _, tt := range []struct{ name, want string }{
		{name: "behind a trampoline",
			want: first + "libc.so(+0x401020)[0x2020] __restore_rt+0x0\n" +
				"app(+0x401013)[0x1013] parse+0x0\napp(+0x401045)[0x1045] main+0x12\n"},
		{name: "behind a call", want: first + "libc.so(+0x401008)[0x2008] raise+0x8\n" +
			"app(+0x401013)[0x1013] before+0x13\n"},
		{name: "behind a frame without a name", want: first + "libgone.so(+0x401020)[0x2020]\n" +
			"app(+0x401013)[0x1013]\n"},
		{name: "inside of a function, behind one",
			want: first + "libgone.so(+0x401020)[0x2020]\n" +
				"app(+0x401015)[0x1015] parse+0x2\n"},
		{name: "another run", want: first + "libgone.so(+0x401020)[0x2020]\n\nand\n" + first +
			"app(+0x401013)[0x1013] before+0x13\n"},
	} {
		in := tt.want
		for _, f := range []string{" main+0x12", " __restore_rt+0x0", " parse+0x0", " before+0x13", " raise+0x8",
			" parse+0x2"} {
			in = strings.ReplaceAll(in, f, "")
		}
		if got, _ := rewrite(t, overlay, opts, in); got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", tt.name, got, tt.want)
		}
		var lines bytes.Buffer // a line at a time, as from a terminal
		r := New(overlay, opts)
		for line := range strings.Lines(in) {
			if err := r.Rewrite(&lines, []byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if lines.String() != tt.want {
			t.Errorf("%s, by lines: got\n%s", tt.name, lines.String())
		}
	}
}
