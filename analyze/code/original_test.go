package code

import (
	"fmt"
	"testing"

	"symbolize/ingest/object/bpf"
)

// records makes line records of the numbers in text, one digit each.
func records(text string) (list []bpf.Line) {
	for i, c := range text {
		list = append(list, bpf.Line{Insn: uint32(i), Line: uint32(c - '0'), File: "x.c"})
	}
	return list
}

// TestAlignRecords: the runs of a loaded function are found in the records of its object file, in
// their order; where several fit, those with equal instructions.
func TestAlignRecords(t *testing.T) {
	for _, row := range []struct {
		all, loaded string
		same        map[[2]int]bool
		want        string
		contains    bool
	}{
		{"1234", "1234", nil, "[0 1 2 3]", true},
		{"1234", "14", nil, "[0 -1 -1 1]", true},
		{"1212", "12", map[[2]int]bool{{2, 0}: true, {3, 1}: true}, "[-1 -1 0 1]", true},
		{"121", "1", map[[2]int]bool{{0, 0}: true}, "[0 -1 -1]", true},
		{"12", "132", nil, "[0 2]", false},
		{"12", "21", nil, "[0 -1]", false},
		{"", "1", nil, "[]", false},
		{"1", "", nil, "[-1]", true},
	} {
		all, loaded := records(row.all), records(row.loaded)
		got := alignRecords(all, loaded, func(record, run int) bool { return row.same[[2]int{record, run}] })
		if row.all == "12" && row.loaded == "21" { // either of the two
			if fmt.Sprint(got) != "[1 -1]" && fmt.Sprint(got) != "[-1 0]" {
				t.Errorf("%s in %s: %v", row.loaded, row.all, got)
			}
		} else if fmt.Sprint(got) != row.want {
			t.Errorf("%s in %s: %v, want %s", row.loaded, row.all, got, row.want)
		}
		if containsRecords(all, loaded) != row.contains {
			t.Errorf("%s in %s: not %v", row.loaded, row.all, row.contains)
		}
	}
	many := make([]bpf.Line, 3000)
	for i, to := range alignRecords(many, many, nil) {
		if to != i {
			t.Fatalf("record %d became run %d", i, to)
		}
	}
}
