package record

import (
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/record/reporter"
)

func newTestCopies(t *testing.T) *copies {
	t.Helper()
	c := &copies{s: newRecording(&Options{})}
	var err error
	if c.copySpools, err = newCopySpools(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// TestFill: a copy fills the gap of a program that could not be read, and no other.
func TestFill(t *testing.T) {
	c := newTestCopies(t)
	for _, id := range []uint32{4, 5, 6} {
		p := testProgram(id)
		err := c.keep(&reporter.Copy{ID: id, Program: rawOf(p), BTFID: p.BTFID,
			BTF: bpfbuild.BTF(bigEndian, &p)})
		if err != nil {
			t.Fatal(err)
		}
	}
	p := newTestPrograms(t, newFakeKernel(5))
	p.s = c.s
	p.load(4, bpf.Tag{4, 1})
	p.load(5, bpf.Tag{5, 1})
	p.load(7, bpf.Tag{7, 1})
	if err := c.fill(p); err != nil {
		t.Fatal(err)
	}
	p.finish()
	s := p.s.summary
	if s.Copied != 1 || s.Images != 2 || s.Programs != 3 || len(s.Missing) != 1 ||
		s.Missing[0].ID != 7 {
		t.Errorf("%+v", s)
	}
	list := decodeSpools(t, p.infos, p.blobs)
	if len(list) != 2 || list[0].ID != 4 || list[0].Funcs[1].Name != "inner" {
		t.Errorf("%+v", list)
	}
	var none *copies
	if err := none.fill(p); err != nil {
		t.Error(err)
	}
}
