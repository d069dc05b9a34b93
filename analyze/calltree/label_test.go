package calltree

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"symbolize/analyze/table"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// TestLookAlikes: functions that have one short name are distinguished in every table, by template
// arguments, or by parameters where they differ in these alone; others keep their name.
func TestLookAlikes(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock())
	x := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/x"}})
	y := b.Object(ingest.Object{File: ingest.FileRef{Path: "/lib/y.so"}})
	var stack []profilebuild.Place
	for i, symbol := range []string{"_ZN1n4sortIiEEvT_", "_ZN1n4sortIcEEvT_", // n::sort<T>(T)
		"_ZN1n1gEi", "_ZN1n1gEd", // n::g(int), n::g(double)
		"_ZN1n4sortIlEEvT_", "_ZN1n5aloneIiEEvT_", "main", "_ZN1n1AC1Ev", "_ZN1n1AC2Ev",
		"_ZN1n1VISaISt4pairIiNS_6StringEEES1_IiS3_EE4dataEi", // n::V<long arguments>::data(int)
		"_ZNK1n1VISaISt4pairIiNS_6StringEEES1_IiS3_EE4dataEv",
		"_ZN1n4copy17h0123456789abcdefE", "_ZN1n4copy17h0123456789abcde0E.llvm.77"} {
		p := profilebuild.Place{Object: x, Offset: addr.Offset(i + 1)}
		if symbol == "_ZN1n4sortIlEEvT_" {
			p.Object = y // the only one of its object
		}
		b.Name(p, 0, profilebuild.Frame{Name: symbol})
		stack = append(stack, p)
	}
	b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1, Stack: stack})
	p := b.Profile()
	top, tree := NewTop(p, TopOptions{}), NewTree(p, Options{}, TreeOptions{})
	peek := NewPeek(p, regexp.MustCompile(`^n::g$`), Options{})
	for name, tt := range map[string]struct {
		write func(*bytes.Buffer) error
		want  []string
	}{
		"top": {write: func(w *bytes.Buffer) error { return top.WriteText(w, table.Style{}) },
			want: []string{
				"  n::sort<int>  (x)\n", "  n::sort<char>  (x)\n", "  n::g(int)  (x)\n",
				"  n::g(double)  (x)\n", "  n::sort  (y.so)\n", "  n::alone  (x)\n", "  main  (x)\n",
				"  n::A::A() [_ZN1n1AC1Ev]  (x)\n", "  n::A::A() [_ZN1n1AC2Ev]  (x)\n",
				"  n::V::data [() const]  (x)\n", "  n::V::data [(int)]  (x)\n",
				"  n::copy [h0123456789abcdef]  (x)\n", "  n::copy [h0123456789abcde0.llvm.77]  (x)\n"}},
		"tree": {write: func(w *bytes.Buffer) error { return tree.WriteText(w, table.Style{}) },
			want: []string{
				"n::sort<int>  (x)\n", "n::g(int)  (x)\n", "n::sort  (y.so)\n"}},
		"peek": {write: func(w *bytes.Buffer) error { return peek.WriteText(w, table.Style{}) },
			want: []string{
				"n::g(int)  (x)\n", "n::g(double)  (x)\n", "n::sort  (x)\n", "n::sort  (y.so)\n"}},
	} {
		var out bytes.Buffer
		if err := tt.write(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, out.String())
			}
		}
	}
	var first bytes.Buffer
	if err := NewTop(p, TopOptions{Limit: 1}).WriteText(&first, table.Style{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(first.String(), "  n::sort<int>  (x)\n") {
		t.Errorf("the row of one of two: %s", first.String())
	}
	if r := top.Rows[0]; r.Name != "n::sort" || r.FullName != "void n::sort<int>(int)" {
		t.Errorf("JSON has %q, %q", r.Name, r.FullName)
	}
}

// TestShorten: of names too long to read the part is shown that they do not share; if it is cut to
// equal parts, or the names are short, they stay whole.
func TestShorten(t *testing.T) {
	long := strings.Repeat("std::vector<", 8)
	ends := strings.Repeat(" >", 8)
	for _, tt := range []struct{ names, want []string }{
		{names: []string{"f<int>", "f<char>"}, want: []string{"f<int>", "f<char>"}},
		{names: []string{"f<" + long + "int" + ends, "f<" + long + "unsigned int" + ends},
			want: []string{"f [int]", "f [unsigned int]"}},
		{names: []string{"f<" + long + "int_a" + ends, "f<" + long + "int_b" + ends,
			"f<" + long + "int" + ends},
			want: []string{"f [int_a]", "f [int_b]", "f [int]"}},
		{names: []string{long + long + "1" + long, long + long + "2" + long + "x" + long}},
		{names: []string{"f<" + long + "é" + ends, "f<" + long + "è" + ends},
			want: []string{"f [é]", "f [è]"}},
		{names: []string{"", "f<" + long}},
		{names: []string{"f<" + long + "int" + ends + "()", "f<" + long + "int" + ends + "() const"},
			want: []string{"f []", "f [const]"}},
		{names: []string{"f<" + long + "int" + ends + "(char)", "f<" + long + "int" + ends + "() const"},
			want: []string{"f [(char)]", "f [() const]"}},
	} {
		names := make(map[string]string)
		for _, name := range tt.names {
			names[name] = name
		}
		shorten(names, "f")
		seen := make(map[string]bool)
		for i, name := range tt.names {
			if tt.want != nil && names[name] != tt.want[i] {
				t.Errorf("%s is %s, want %s", name, names[name], tt.want[i])
			}
			seen[names[name]] = true
		}
		if len(seen) != len(tt.names) {
			t.Errorf("%q: equal labels %q", tt.names, names)
		}
	}
}
