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
		{object: ingest.Object{File: ingest.FileRef{Path: "/usr/lib/libc.so.6"}}, offset: 0x27220,
			want: "[libc.so.6+0x27220]"},
		{object: ingest.Object{File: ingest.FileRef{Path: "relative"}}, want: "[relative+0x0]"},
		{object: ingest.Object{File: ingest.FileRef{Path: "/dir/"}}, offset: 1,
			want: "[/dir/+0x1]"},
		{object: ingest.Object{Kind: ingest.Kernel, File: ingest.FileRef{Path: "[kernel.kallsyms]"}},
			offset: ^addr.Offset(0),
			want:   "[kernel.kallsyms+0xffffffffffffffff]"},
		{object: ingest.Object{ID: id}, offset: 0x1f, want: "[buildid:abcd+0x1f]"},
		{object: ingest.Object{}, offset: 2, want: "[unknown+0x2]"},
		{object: ingest.Object{File: ingest.FileRef{Path: "/x\x1b\n"}}, offset: 2,
			want: "[x??+0x2]"},
		{object: ingest.Object{Kind: ingest.Anonymous, File: ingest.FileRef{Path: "//anon"}},
			want: "[anon]"},
		{object: ingest.Object{Kind: ingest.Anonymous}, want: "[anon]"},
		{object: ingest.Object{Kind: ingest.Unmapped,
			File: ingest.FileRef{Path: ingest.UnmappedKernelPath}},
			want: "[unmapped kernel]"},
		{object: ingest.Object{Kind: ingest.Unmapped}, want: "[unmapped]"},
		{object: ingest.Object{Kind: ingest.Guest}, want: "[guest]"},
		{object: ingest.Object{Kind: ingest.Hypervisor}, want: "[hypervisor]"},
		{object: ingest.Object{Kind: ingest.NoStack}, want: "[no stack]"},
	} {
		if got := string(ingest.AppendUnresolved([]byte("x"), &tt.object,
			tt.offset)); got != "x"+tt.want {
			t.Errorf("got %s, want x%s", got, tt.want)
		}
	}
}
