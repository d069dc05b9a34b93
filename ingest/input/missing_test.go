package input

import (
	"testing"

	"symbolize/fixtures/bundlebuild"
	"symbolize/ingest/object/bpf"
)

// TestLostPrograms: programs that a bundle's recorder could not read have its reason,
// in the bundle and in a recording beside it.
func TestLostPrograms(t *testing.T) {
	const odd = "too many open files"
	for _, tt := range []struct {
		name   string
		unread map[uint32]string
		want   map[uint32]string // Missing of the bundle's programs, by ID
	}{
		{name: "none", want: map[uint32]string{41: "", 42: ""}},
		{name: "one", unread: map[uint32]string{41: bpf.MissingGone},
			want: map[uint32]string{41: bpf.MissingGone, 42: ""}},
		{name: "all", unread: map[uint32]string{41: bpf.MissingGone, 42: odd},
			want: map[uint32]string{41: bpf.MissingGone, 42: odd}},
		{name: "of before",
			unread: map[uint32]string{7: odd}, want: map[uint32]string{7: odd, 41: "", 42: ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := bundlebuild.NewHost()
			h.Unread = tt.unread
			b := openBuilt(t, h.Bundle())
			programs, err := b.Programs()
			if err != nil || len(programs) != len(tt.want) {
				t.Fatalf("%d programs, %v", len(programs), err)
			}
			for i := range programs {
				p := &programs[i]
				want, ok := tt.want[p.ID]
				if !ok || p.Missing != want || len(p.Funcs) == 0 || (p.Raw == nil) != (want != "") {
					t.Errorf("program %d %q: missing %q, want %q", p.ID, p.Name, p.Missing, want)
				}
				if i > 0 && programs[i-1].ID >= p.ID {
					t.Errorf("program %d comes after %d", p.ID, programs[i-1].ID)
				}
			}
			_, p := withBundles(t, h.PerfData(bundlebuild.NoInfo), openBuilt(t, h.Bundle()))
			for id, symbol := range map[uint32]string{41: bundlebuild.Symbol(&h.A, 0),
				42: bundlebuild.Symbol(&h.B, 0)} {
				o := objectOf(t, p, symbol)
				if o.WhyNoImage != tt.want[id] || o.NoImage != (tt.want[id] != "") {
					t.Errorf("%s: no image %v, why %q, want %q", symbol, o.NoImage, o.WhyNoImage,
						tt.want[id])
				}
			}
		})
	}
}

// TestLostRows passes over empty rows of a manifest, and keeps the first of two.
func TestLostRows(t *testing.T) {
	h := bundlebuild.NewHost()
	h.Manifest = map[string]any{"missing": []map[string]any{{"id": 0, "reason": "x"},
		{"id": 6}, {"id": 7, "reason": "a",
			"symbol": "bpf_prog_0102030405060708_a_name_of_more_than_15"},
		{"id": 7, "reason": "b"}}}
	programs, err := openBuilt(t, h.Bundle()).Programs()
	if err != nil || len(programs) != 3 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	p := &programs[0]
	if p.ID != 7 || p.Missing != "a" || p.Name != "a_name_of_more_" ||
		p.Symbol(0) != "bpf_prog_0102030405060708_a_name_of_more_than_15" {
		t.Errorf("%+v, %s", p, p.Symbol(0))
	}
}
