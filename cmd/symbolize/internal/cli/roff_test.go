package cli

import "testing"

// TestManText: no text is taken for a request or an escape, and each is there whole.
func TestManText(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{name: "words", text: "a_b *c* <d>", want: "a_b *c* <d>"},
		{name: "a file that begins with a dot", text: "reads\n.debug\n'x'",
			want: "reads\n\\&.debug\n\\&'x'"},
		{name: "backslash", text: `a\nb`, want: `a\\nb`},
		{name: "quoted", text: "the `N` of `a b`", want: `the \fBN\fR of \fBa b\fR`},
		{name: "a quote alone", text: "`a` b`c", want: "\\fBa\\fR b`c"},
		{name: "nothing"},
	} {
		if got := manText(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestDescription: paragraphs, examples and titles.
func TestDescription(t *testing.T) {
	p := &manPage{}
	p.section("X")
	p.description("one\ntwo\n\nthree:\n\n\ta  b\n\tc\n\n#### Linux:\n\n\td\n\nlast")
	const want = "\n\n.SH X\none\ntwo\n\n.PP\nthree:\n\n.EX\na  b\nc\n.EE\n\n.SS Linux:\n.EX\nd\n.EE\n" +
		"\n.PP\nlast\n"
	if got := p.b.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
