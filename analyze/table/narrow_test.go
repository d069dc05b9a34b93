package table

import (
	"bytes"
	"testing"
)

// TestNarrowTables: on narrow terminals lesser columns are left out, and texts break at words.
func TestNarrowTables(t *testing.T) {
	for _, tt := range []struct {
		name  string
		width int
		make  func() *Table
		want  string
	}{
		{name: "no terminal", make: lesser, want: "   1  recorded  /srv/app\n"},
		{name: "wide", width: 40, make: lesser, want: "   1  recorded  /srv/app\n"},
		{name: "narrow", width: 20, make: lesser, want: "   1  /srv/app\n"},
		{name: "fields", make: fields, want: "records  77 COMM, 76 FORK, 18 EXIT\nhost     vm\n"},
		{name: "fields on a terminal", width: 24, make: fields,
			want: "records  77 COMM, 76\n         FORK, 18 EXIT\nhost     vm\n"},
		{name: "no space for a second column", width: 12, make: fields,
			want: "records  77 COMM, 76 FORK, 18 EXIT\nhost     vm\n"},
	} {
		var b bytes.Buffer
		if err := tt.make().Print(&Styled{Writer: &b, Style: Style{Width: tt.width}}); err != nil {
			t.Fatal(err)
		}
		if b.String() != tt.want {
			t.Errorf("%s:\n%swant\n%s", tt.name, b.String(), tt.want)
		}
	}
}

func lesser() *Table {
	t := New(true, false).Names(1, 2).Without(30, 1)
	t.Row("   1", "recorded", "/srv/app")
	return t
}

func fields() *Table {
	t := New().Wrapped()
	t.Row("records", "77 COMM, 76 FORK, 18 EXIT")
	t.Row("host", "vm")
	return t
}
