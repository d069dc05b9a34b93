package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/record/sys"
)

// testProgram is a program of two functions with lines and BTF, of its own ids.
func testProgram(id uint32) bpfbuild.Program {
	line := func(n uint32) []bpfbuild.Line {
		return []bpfbuild.Line{{Line: n, File: "x.bpf.c", Source: "{"}}
	}
	b := byte(id)
	return bpfbuild.Program{Type: 17, ID: id, BTFID: 1000 + id, Tag: [8]byte{b, 1}, Name: "on_enter",
		LoadTime: 77, UID: 5, Funcs: []bpfbuild.Func{
			{Name: "on_enter", Tag: [8]byte{b, 2}, Start: 0xffffffffc0000000 + uint64(id)<<16,
				Code: bytes.Repeat([]byte{b}, 4096+40), Lines: line(10)},
			{Name: "inner", Tag: [8]byte{b, 3}, Start: 0xffffffffc0008000 + uint64(id)<<16,
				Code: bytes.Repeat([]byte{b + 1}, 24), Lines: line(20)},
		}}
}

// rawOf gives a built program as the kernel would.
func rawOf(p bpfbuild.Program) *bpf.RawProgram {
	const count, head = 4, 16
	section, _ := bpfbuild.Sections(bigEndian, p)
	entry := section[count:]
	order := binary.NativeEndian
	n := order.Uint32(entry)
	raw := &bpf.RawProgram{Info: bytes.Clone(entry[head : head+n]), BigEndian: bigEndian}
	data := entry[head+n:]
	for i, a := range bpf.Arrays {
		if order.Uint64(entry[8:])>>i&1 != 0 {
			at := order.Uint64(raw.Info[a.Pointer:])
			size := uint64(order.Uint32(raw.Info[a.Count:])) * uint64(a.Size)
			raw.Arrays[i] = data[at:][:size]
		}
	}
	return raw
}

// fakeKernel has programs, and errors where it should have them.
type fakeKernel struct {
	programs map[uint32]bpfbuild.Program
	openErr  map[uint32]error
	readErr  map[uint32]error
	blobErr  map[uint32]error
	maps     map[uint32]rawdump.Header
	uses     map[uint32][]uint32 // maps of programs
	hidden   bool                // the code of all programs, by kptr_restrict
	opened   []int               // descriptors that are not closed
}

func (k *fakeKernel) Open(id uint32) (int, error) {
	if err := k.openErr[id]; err != nil {
		return -1, err
	}
	if _, ok := k.programs[id]; !ok {
		return -1, unix.ENOENT
	}
	k.opened = append(k.opened, int(id))
	return int(id), nil
}

func (k *fakeKernel) Close(fd int) {
	k.opened = slices.DeleteFunc(k.opened, func(o int) bool { return o == fd })
}

func (k *fakeKernel) Program(fd int) (*bpf.RawProgram, error) {
	if err := k.readErr[uint32(fd)]; err != nil {
		return nil, err
	}
	raw := rawOf(k.programs[uint32(fd)])
	if k.hidden {
		for _, i := range []int{bpf.ArrayJITedInsns, bpf.ArrayJITedKSyms, bpf.ArrayJITedFuncLens,
			bpf.ArrayJITedLineInfo} {
			raw.Arrays[i] = nil
		}
	}
	for _, id := range k.uses[uint32(fd)] {
		raw.Arrays[bpf.ArrayMapIDs] = binary.NativeEndian.AppendUint32(raw.Arrays[bpf.ArrayMapIDs], id)
	}
	return raw, nil
}

func (k *fakeKernel) BTF(id uint32) ([]byte, error) {
	if err := k.blobErr[id]; err != nil {
		return nil, err
	}
	p := k.programs[id-1000]
	return bpfbuild.BTF(bigEndian, &p), nil
}

func (k *fakeKernel) Map(id uint32) (rawdump.Header, error) {
	if h, ok := k.maps[id]; ok {
		return h, nil
	}
	return rawdump.Header{}, unix.ENOENT
}

func newFakeKernel(ids ...uint32) *fakeKernel {
	k := &fakeKernel{programs: make(map[uint32]bpfbuild.Program)}
	for _, id := range ids {
		k.programs[id] = testProgram(id)
	}
	return k
}

func newTestPrograms(t *testing.T, k *fakeKernel) *programs {
	t.Helper()
	p, err := newPrograms(newRecording(&Options{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	p.source = k
	return p
}

// decodeSpools decodes the spooled programs.
func decodeSpools(t *testing.T, infos, blobs *spool) []bpf.Program {
	t.Helper()
	section := func(s *spool) []byte {
		b, err := io.ReadAll(s.section())
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	btfs, err := bpf.DecodeBTFs("btf", section(blobs), 0, bigEndian)
	if err != nil {
		t.Fatal(err)
	}
	list, err := bpf.DecodePrograms("info", section(infos), 0, bigEndian, btfs)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestProgramMaps: maps of programs are described once, with the BTF of those with types.
func TestProgramMaps(t *testing.T) {
	k := newFakeKernel(3, 7, 9)
	k.uses = map[uint32][]uint32{3: {21, 22, 23, 24}, 7: {21}}
	k.maps = map[uint32]rawdump.Header{
		21: {Name: "typed", Type: 1, BTFID: 1009, ValueType: 2, ValueSize: 16, MaxEntries: 5},
		22: {Name: "own", Type: 2, BTFID: 1003, ValueType: 3, ValueSize: 8, MaxEntries: 1},
		23: {Name: "bare", Type: 2, ValueSize: 8, MaxEntries: 1}, // 24 is gone
	}
	p := newTestPrograms(t, k)
	p.present(3)
	k.maps = nil // the second time the map is known
	p.present(7)
	got := p.s.maps.list()
	slices.SortFunc(got, func(a, b bpf.MapStats) int { return int(a.ID) - int(b.ID) })
	want := []bpf.MapStats{{ID: 21, Name: "typed", Type: 1, BTF: 1009, Value: 2, ValueSize: 16, Entries: 5},
		{ID: 22, Name: "own", Type: 2, BTF: 1003, Value: 3, ValueSize: 8, Entries: 1}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	var blobs []uint32
	for _, e := range p.blobs.entries {
		blobs = append(blobs, e.id)
	}
	if slices.Sort(blobs); !slices.Equal(blobs, []uint32{1003, 1007, 1009}) {
		t.Errorf("BTF of %v", blobs)
	}
}

// TestProgramsKept reads present and new programs, each once, and keeps no descriptors open.
func TestProgramsKept(t *testing.T) {
	k := newFakeKernel(3, 7, 9)
	p := newTestPrograms(t, k)
	p.present(7)
	p.load(3, bpf.Tag{3, 1})
	p.load(7, bpf.Tag{7, 1}) // its record came after the list had it
	p.present(3)
	p.load(9, bpf.Tag{9, 1})
	p.finish()
	list := decodeSpools(t, p.infos, p.blobs)
	if p.err != nil || len(list) != 3 || len(k.opened) != 0 {
		t.Fatalf("%d programs, %v; descriptors %v are open", len(list), p.err, k.opened)
	}
	for i, id := range []uint32{3, 7, 9} {
		x, want := &list[i], testProgram(id)
		if x.ID != id || x.Missing != "" || len(x.Funcs) != 2 || x.Funcs[1].Name != "inner" ||
			!bytes.Equal(x.Funcs[0].Image, want.Funcs[0].Code) || len(x.Funcs[1].Lines) != 1 {
			t.Errorf("program %d: %+v", id, x)
		}
		if !p.seen[id].loaded {
			t.Errorf("program %d was loaded meanwhile", id)
		}
	}
	if s := p.s.summary; s.Programs != 3 || s.Images != 3 || s.BTFs != 3 || s.Lost != nil ||
		len(s.Missing) != 0 || s.Bytes != p.infos.size+p.blobs.size {
		t.Errorf("%+v", s)
	}
}

// TestProgramsMissing: each program that cannot be read is counted and listed with its reason; the
// others are kept.
func TestProgramsMissing(t *testing.T) {
	k := newFakeKernel(1, 2, 3, 4, 5, 6)
	k.openErr = map[uint32]error{2: unix.EPERM, 3: unix.EMFILE}
	k.readErr = map[uint32]error{4: unix.ENOENT, 5: sys.ErrTooLarge}
	k.blobErr = map[uint32]error{1006: unix.ENOENT}
	p := newTestPrograms(t, k)
	want := map[uint32]string{2: bpf.MissingRights, 3: unix.EMFILE.Error(), 4: bpf.MissingGone,
		5: sys.ErrTooLarge.Error(), 99: bpf.MissingGone}
	for _, id := range []uint32{99, 1, 2, 3, 4, 5, 6} {
		p.load(id, bpf.Tag{byte(id), 1})
	}
	p.finish()
	out, err := newPerfOut([]uint64{1}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer out.close()
	ksymbols := 0
	if err := p.synthesize(out.w, &ksymbols); err != nil || ksymbols != 0 {
		t.Errorf("%d records were made up of programs that have their own; %v", ksymbols, err)
	}
	s := p.s.summary
	got := make(map[uint32]string)
	for i, m := range s.Missing {
		got[m.ID] = m.Reason
		if m.Symbol != bpf.SymbolOf(bpf.Tag{byte(m.ID), 1}, "") ||
			i > 0 && s.Missing[i-1].ID >= m.ID {
			t.Errorf("row %d: %+v", i, m)
		}
	}
	if len(got) != len(want) || s.Programs != 7 || s.Images != 2 || len(k.opened) != 0 {
		t.Errorf("missing %v, want %v; %+v; open %v", got, want, s, k.opened)
	}
	for id, reason := range want {
		if got[id] != reason {
			t.Errorf("program %d: %q, want %q", id, got[id], reason)
		}
	}
	const images = "images of BPF programs: "
	if s.Lost[images+bpf.MissingGone] != 2 || s.Lost[images+bpf.MissingRights] != 1 ||
		s.Lost[images+sys.ErrTooLarge.Error()] != 1 || s.Lost["BTF of BPF programs: "+bpf.MissingGone] != 1 {
		t.Errorf("lost %v", s.Lost)
	}
	list := decodeSpools(t, p.infos, p.blobs)
	if len(list) != 3 || list[1].ID != 2 || list[1].Missing != bpf.MissingRights ||
		list[2].ID != 6 || list[2].BTF != nil {
		t.Errorf("entries %+v", list)
	}
}

// TestProgramsHidden: a program that was read without its code is missing too, and has no records,
// which would need an address.
func TestProgramsHidden(t *testing.T) {
	k := newFakeKernel(1)
	k.hidden = true
	p := newTestPrograms(t, k)
	p.present(1)
	p.finish()
	out, err := newPerfOut([]uint64{1}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer out.close()
	ksymbols := 0
	if err := p.synthesize(out.w, &ksymbols); err != nil || ksymbols != 0 {
		t.Errorf("%d records, %v", ksymbols, err)
	}
	s := p.s.summary
	if len(s.Missing) != 1 || s.Missing[0].Reason != bpf.MissingHidden || s.Images != 0 ||
		s.Missing[0].Symbol != "bpf_prog_0101000000000000_on_enter" ||
		s.Lost["images of BPF programs: "+bpf.MissingHidden] != 1 {
		t.Errorf("%+v", s)
	}
}

// TestSynthesize: records are synthesized only for earlier programs.
func TestSynthesize(t *testing.T) {
	p := newTestPrograms(t, newFakeKernel(1, 2))
	p.present(1)
	p.load(2, bpf.Tag{2, 1})
	p.finish()
	out, err := newPerfOut([]uint64{1}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer out.close()
	ksymbols := 0
	if err := p.synthesize(out.w, &ksymbols); err != nil || ksymbols != 2 ||
		p.s.summary.Functions != 4 {
		t.Fatalf("%d records, %+v, %v", ksymbols, p.s.summary, err)
	}
	names, ids := recordsOf(t, out)
	if !slices.Equal(names, []string{"bpf_prog_0101000000000000_on_enter",
		"bpf_prog_0103000000000000_inner"}) || !slices.Equal(ids, []uint32{1}) {
		t.Errorf("%q, events of %v", names, ids)
	}
}

// recordsOf closes a perf.data and returns the names in its KSYMBOL records and the ids in its
// records of loads.
func recordsOf(t *testing.T, out *perfOut) (names []string, ids []uint32) {
	t.Helper()
	if err := out.w.Close(); err != nil {
		t.Fatal(err)
	}
	fi, err := out.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := perfdata.Open("perf.data", out.file, fi.Size())
	if err != nil {
		t.Fatal(err)
	}
	r := f.AllRecords()
	for r.Next() {
		var k perfdata.KSymbol
		var b perfdata.BPFEvent
		switch rec := r.Record(); rec.Type {
		case perfdata.TypeKSymbol:
			if err := f.KSymbol(rec, &k); err != nil {
				t.Fatal(err)
			}
			names = append(names, string(k.Name))
		case perfdata.TypeBPFEvent:
			if err := f.BPFEvent(rec, &b); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, b.ID)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return names, ids
}

// TestSpoolFull: the error of a full disk is kept until requested, and nothing panics meanwhile.
func TestSpoolFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	p := newTestPrograms(t, newFakeKernel(1, 2))
	p.infos.file.Close()
	p.infos.file = full
	p.infos.buf.Reset(full)
	for range 100 { // more than the buffer holds
		p.keep(1, &program{}, rawOf(testProgram(1)))
	}
	if !errors.Is(p.err, unix.ENOSPC) {
		t.Errorf("error %v", p.err)
	}
	if _, err := io.ReadAll(p.infos.section()); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error of reading %v", err)
	}
}
