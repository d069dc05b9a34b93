package table

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB",
		12_900_000: "12.3 MiB", 5 << 30: "5.0 GiB", 1<<63 - 1: "8.0 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	tab := New(true, false)
	tab.Row("N", "NAME", "PATH")
	tab.Row("12", "é", "/a")
	tab.Row("3", "long\x1b", "")
	tab.Field("no", "")
	if err := tab.Print(&out); err != nil {
		t.Fatal(err)
	}
	want := " N  NAME   PATH\n12  é      /a\n 3  long?  \n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestPrintAll prints rows that are all in the same memory: none of them is kept.
func TestPrintAll(t *testing.T) {
	for _, width := range []int{0, 16} {
		whole := New(false, true).Names(0)
		whole.Row("NAME", "N")
		row, walks := make([]string, 2), 0
		rows := func(yield func([]string, error) bool) {
			walks++
			for i := range 300 {
				row[0], row[1] = strings.Repeat("x", i%20)+"\x1b", fmt.Sprint(i*i)
				if !yield(row, nil) {
					return
				}
			}
		}
		var got, want strings.Builder
		style := Style{Width: width}
		if err := whole.PrintAll(&Styled{Writer: &got, Style: style}, rows); err != nil {
			t.Fatal(err)
		}
		for r := range rows {
			whole.Row(r[0], r[1])
		}
		if err := whole.Print(&Styled{Writer: &want, Style: style}); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() || walks != 3 {
			t.Errorf("%d columns, %d walks: got\n%s\nwant\n%s", width, walks, &got, &want)
		}
	}
	failure := errors.New("no more")
	err := New().PrintAll(&strings.Builder{}, func(yield func([]string, error) bool) { yield(nil, failure) })
	if err != failure {
		t.Errorf("%v, want %v", err, failure)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 files", 1: "1 file", 2: "2 files"} {
		if got := Count(n, "file", "files"); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// TestNames: on a terminal the names are cut in the middle, the last column first, and no number or
// other text ever is.
func TestNames(t *testing.T) {
	const whole = "1234567  a_long_name_of_a_thing  0123  /usr/lib/x86_64/libc.so.6\n"
	for _, tt := range []struct {
		width int
		want  string
	}{
		{width: 0, want: whole}, {width: 80, want: whole},
		{width: 55, want: "1234567  a_long_name_of_a_thing  0123  /usr/li…ibc.so.6\n"},
		{width: 40, want: "1234567  a_lon…_thing  0123  /usr/…c.so.6\n"},
		{width: 10, want: "1234567  a_lon…_thing  0123  /usr/…c.so.6\n"},
	} {
		tab := New(true, false, false).Names(1, 3)
		tab.Row("1234567", "a_long_name_of_a_thing", "0123", "/usr/lib/x86_64/libc.so.6")
		var out strings.Builder
		if err := tab.Print(&Styled{Writer: &out, Style: Style{Width: tt.width}}); err != nil {
			t.Fatal(err)
		}
		if out.String() != tt.want {
			t.Errorf("%d columns: %s", tt.width, out.String())
		}
	}
}
