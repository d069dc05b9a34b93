package inspect

import (
	"bytes"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/store"
)

// TestStored selects and prints an object by its build ID, path and symbol.
func TestStored(t *testing.T) {
	id, err := buildid.Parse(strings.Repeat("ab", 20))
	if err != nil {
		t.Fatal(err)
	}
	m := &store.Manifest{ID: id, Sources: []store.SourceInfo{
		{Kind: store.DWARF, Path: "/usr/lib/debug/libx.debug"},
		{Kind: store.Symtab, Funcs: 3, Named: 2048, Path: "/usr/lib/libx.so"},
	}}
	o := NewStored(m)
	for _, c := range []struct {
		name string
		args []string
		want bool
	}{
		{name: "all", want: true},
		{name: "ID", args: []string{"ABab"}, want: true},
		{name: "second path", args: []string{"none", "libx.so"}, want: true},
		{name: "middle of the ID", args: []string{"bab"}},
	} {
		if got := o.Matches(c.args); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	var list, all bytes.Buffer
	if err := WriteList(&list, func(yield func(*Stored, error) bool) { yield(o, nil) }); err != nil {
		t.Fatal(err)
	}
	if err := WriteStored(&all, store.NewOverlay(), m); err != nil {
		t.Fatal(err)
	}
	if row := list.String(); !strings.Contains(row, "dwarf") ||
		!strings.HasSuffix(row, "  /usr/lib/debug/libx.debug\n") {
		t.Errorf("list:\n%s", row)
	}
	if !strings.Contains(all.String(), "symtab, 3 functions, 2.0 KiB of code") ||
		!strings.Contains(all.String(), "unknown until the runtime file is indexed") {
		t.Errorf("object:\n%s", &all)
	}
	if q := NewStored(&store.Manifest{ID: id}).Quality; q != "none" {
		t.Errorf("quality %q without sources", q)
	}
}
