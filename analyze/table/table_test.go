package table

import (
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
