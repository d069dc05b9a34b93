package input

import (
	"path/filepath"
	"slices"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest"
)

// TestAddresses: each address has the location of the object by a kernel's list, in the order of
// the list, also where one comes twice.
func TestAddresses(t *testing.T) {
	list := filepath.Join(t.TempDir(), "kallsyms")
	const text = "ffffffff81000000 T _text\nffffffff81000100 T one\nffffffff82000000 T _end\n" +
		"ffffffffc0001000 t in_module\t[worker_mod]\nffffffffc0100000 t bpf_prog_0123456789abcdef_x\t[bpf]\n"
	must.Write(t, list, []byte(text))
	in := []uint64{0xffffffffc0001008, 0xffffffff81000104, 0x1000, 0xffffffff81000104,
		0xffffffffc0100004}
	p, at, err := Addresses(t.Context(), "x", in, Options{Stacks: StackOptions{Kallsyms: list}})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		kind   ingest.ObjectKind
		offset uint64
	}{{kind: ingest.Module, offset: 8}, {kind: ingest.Kernel, offset: 0x104}, {kind: ingest.Unmapped,
		offset: 0}, {kind: ingest.Kernel, offset: 0x104},
		{kind: ingest.JIT, offset: 4}}
	if len(at) != len(want) || at[1] != at[3] {
		t.Fatalf("locations %v", at)
	}
	for i, w := range want {
		l := p.Locations[at[i]]
		if o := p.Objects[l.Object]; o.Kind != w.kind || uint64(l.Offset) != w.offset {
			t.Errorf("%#x: %+v at %#x, want kind %d at %#x", in[i], o, l.Offset, w.kind, w.offset)
		}
	}
	var counts []uint64
	for i := range p.Samples {
		counts = append(counts, p.Samples[i].Count)
		if p.Samples[i].PID != -1 {
			t.Errorf("sample %d: process %d", i, p.Samples[i].PID)
		}
	}
	if slices.Sort(counts); !slices.Equal(counts, []uint64{1, 1, 1, 2}) {
		t.Errorf("counts %d: equal addresses are one sample", counts)
	}
	p, at, err = Addresses(t.Context(), "none", nil, Options{})
	if err != nil || len(at) != 0 || len(p.Samples) != 0 {
		t.Errorf("none: %v, %v", at, err)
	}
}

// TestTooManyAddresses: a list that no Set can hold is an error before memory is used for it.
func TestTooManyAddresses(t *testing.T) {
	list := make([]uint64, 1<<24+1)
	if _, _, err := Addresses(t.Context(), "x", list, Options{}); err == nil {
		t.Error("no error")
	}
}
