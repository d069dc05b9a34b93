package bpf

import (
	"testing"

	"symbolize/ingest/object/btf"
)

// TestDecodeProgram decodes each entry of a recorded section alone.
func TestDecodeProgram(t *testing.T) {
	info, blobs := recorded(t, "bpf-before")
	btfs, err := DecodeBTFs("test", blobs, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	types := func(id uint32) *btf.Types { return btfs[id] }
	programs, err := DecodePrograms("test", info, 0, false, btfs)
	if err != nil || len(programs) == 0 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	for i := range programs {
		p, err := DecodeProgram("test", programs[i].Raw, false, types)
		if err != nil {
			t.Fatal(err)
		}
		if text([]Program{*p}) != text(programs[i:i+1]) || len(p.Raw) != len(programs[i].Raw) {
			t.Errorf("entry %d differs from that of the section", i)
		}
	}
	raw := programs[0].Raw
	for n := range raw {
		if p, err := DecodeProgram("test", raw[:n:n], false, types); err == nil || p != nil {
			t.Fatalf("%d of %d bytes: no error", n, len(raw))
		}
	}
}
