package texts_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"symbolize/ingest/texts"
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
		if got := texts.Printable(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[0m", "\xf0\x9f\x98\x80", "\xed\xa0\x80", "a\u202eb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := texts.Printable(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q is %q", s, got)
		}
		if again := texts.Printable(got); again != got {
			t.Errorf("%q is %q, then %q", s, got, again)
		}
	})
}
