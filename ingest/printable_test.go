package ingest_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"main.(*T).Foo[...]":        "main.(*T).Foo[...]",
		"größe::λ":                  "größe::λ",
		"a\x1b[31mb":                "a?[31mb",
		"two\nlines\ttab\x7f":       "two?lines?tab?",
		"\xff\xfe":                  "??",
		"cut \xe2\x82":              "cut ??",
		"c1 \u0085 and \u009b":      "c1 ? and ?",
		"bidi \u202egnp.exe\u2066x": "bidi ?gnp.exe?x",
		"zero\u200bwidth":           "zero?width",
		"\u2028\u2029":              "??",
		"\ufffd is itself":          "\ufffd is itself",
	} {
		if got := ingest.Printable(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[0m", "\xf0\x9f\x98\x80", "\xed\xa0\x80", "a\u202eb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := ingest.Printable(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q is %q", s, got)
		}
		if again := ingest.Printable(got); again != got {
			t.Errorf("%q is %q, then %q", s, got, again)
		}
	})
}

func TestUnresolvedText(t *testing.T) {
	id := buildid.New([]byte{0xab, 0xcd})
	for _, tt := range []struct {
		object ingest.Object
		offset addr.Offset
		want   string
	}{
		{ingest.Object{File: ingest.FileRef{Path: "/usr/lib/libc.so.6"}}, 0x27220,
			"[libc.so.6+0x27220]"},
		{ingest.Object{File: ingest.FileRef{Path: "relative"}}, 0, "[relative+0x0]"},
		{ingest.Object{File: ingest.FileRef{Path: "/dir/"}}, 1, "[/dir/+0x1]"},
		{ingest.Object{Kind: ingest.Kernel, File: ingest.FileRef{Path: "[kernel.kallsyms]"}},
			^addr.Offset(0),
			"[kernel.kallsyms+0xffffffffffffffff]"},
		{ingest.Object{ID: id}, 0x1f, "[buildid:abcd+0x1f]"},
		{ingest.Object{}, 2, "[unknown+0x2]"},
		{ingest.Object{File: ingest.FileRef{Path: "/x\x1b\n"}}, 2, "[x??+0x2]"},
		{ingest.Object{Kind: ingest.Anonymous, File: ingest.FileRef{Path: "//anon"}}, 0, "[anon]"},
		{ingest.Object{Kind: ingest.Anonymous}, 0, "[anon]"},
		{ingest.Object{Kind: ingest.Unmapped,
			File: ingest.FileRef{Path: ingest.UnmappedKernelPath}}, 0,
			"[unmapped kernel]"},
		{ingest.Object{Kind: ingest.Unmapped}, 0, "[unmapped]"},
		{ingest.Object{Kind: ingest.Guest}, 0, "[guest]"},
		{ingest.Object{Kind: ingest.Hypervisor}, 0, "[hypervisor]"},
		{ingest.Object{Kind: ingest.NoStack}, 0, "[no stack]"},
	} {
		if got := string(ingest.AppendUnresolved([]byte("x"), &tt.object,
			tt.offset)); got != "x"+tt.want {
			t.Errorf("got %s, want x%s", got, tt.want)
		}
	}
}
