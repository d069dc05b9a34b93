package bpf

import (
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/object/btf"
)

// checkPrograms checks the invariants of decoded programs.
func checkPrograms(t *testing.T, programs []Program, size int) {
	total := 0
	for i := range programs {
		p := &programs[i]
		total += len(p.Raw)
		if len(p.Raw) == 0 || len(p.Funcs) == 0 {
			t.Fatalf("program %d: raw of %d bytes, %d functions", i, len(p.Raw), len(p.Funcs))
		}
		if (p.Missing == "") != (p.Funcs[0].Image != nil) {
			t.Fatalf("program %d: missing %q, image of %d bytes", i, p.Missing, len(p.Funcs[0].Image))
		}
		for k := range p.Funcs {
			f := &p.Funcs[k]
			if f.Image != nil && len(f.Image) != int(f.Length) {
				t.Fatalf("function %d: image of %d bytes, length %d", k, len(f.Image), f.Length)
			}
			for n, l := range f.Lines {
				if n == 0 && l.Offset != 0 || n > 0 && l.Offset <= f.Lines[n-1].Offset ||
					l.Offset >= f.Length || l.Line == 0 {
					t.Fatalf("function %d: line %d is %+v of %d bytes", k, n, l, f.Length)
				}
			}
			checkInstructions(t, p, k)
			if p.Identity(k, "x86_64").IsZero() || p.Symbol(k) == "" || p.PerfSymbol(k) == "" {
				t.Fatalf("function %d has no identity or name", k)
			}
		}
	}
	if total > size {
		t.Fatalf("%d bytes of entries in %d", total, size)
	}
}

// checkInstructions checks the BPF instructions of a function, if they are known.
func checkInstructions(t *testing.T, p *Program, k int) {
	in, err := p.Instructions(k)
	if err != nil {
		return
	}
	n := uint32(len(in.Code) / InsnSize)
	if n == 0 || len(in.Runs) == 0 || in.Runs[0].Insn != in.First || in.Runs[0].Offset != 0 {
		t.Fatalf("function %d: %d instructions in the runs %+v", k, n, in.Runs)
	}
	for i, r := range in.Runs {
		if i > 0 && (r.Insn <= in.Runs[i-1].Insn || r.Offset < in.Runs[i-1].Offset) || r.Insn-in.First >= n {
			t.Fatalf("function %d: run %d is %+v", k, i, r)
		}
	}
}

// FuzzDecodePrograms decodes any two sections.
func FuzzDecodePrograms(f *testing.F) {
	for _, big := range []bool{false, true} {
		for _, hide := range []uint64{0, bpfbuild.Jited} {
			p := translated()
			p.Hide = hide
			info, blobs := bpfbuild.Sections(big, p)
			f.Add(info, blobs, big)
		}
		f.Add([]byte{1, 0, 0, 0}, []byte{0xff, 0xff, 0xff, 0xff}, big)
	}
	info, blobs := recorded(f, "bpf-before")
	f.Add(info, blobs, false)
	f.Fuzz(func(t *testing.T, info, blobs []byte, big bool) {
		btfs, err := DecodeBTFs("fuzz", blobs, 0, big)
		if btfs == nil {
			t.Fatal(err)
		}
		programs, err := DecodePrograms("fuzz", info, 0, big, btfs)
		checkPrograms(t, programs, len(info))
		again, err2 := DecodePrograms("fuzz", info, 0, big, btfs)
		if (err == nil) != (err2 == nil) || text(programs) != text(again) {
			t.Fatal("decoded twice, it differs")
		}
		for i := range programs {
			p, err := DecodeProgram("fuzz", programs[i].Raw, big,
				func(id uint32) *btf.Types { return btfs[id] })
			if err != nil || p.NoLines(0) != programs[i].NoLines(0) {
				t.Fatalf("entry %d alone: %v", i, err)
			}
		}
	})
}

// FuzzLines decodes any line table of a program that is whole otherwise.
func FuzzLines(f *testing.F) {
	p := sample()
	a := decodeBuilt(f, false, p)[0]
	blob := bpfbuild.BTF(false, &p)
	info := a.Raw[16 : 16+bpfbuild.InfoSize]
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 4, 0, 0},
		[]byte{0x94, 0x5b, 2, 0xc0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, lines, addrs []byte) {
		types, err := btf.Parse("fuzz", blob, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw := RawProgram{Info: append([]byte(nil), info...)}
		put := bpfbuild.OrderOf(false).PutUint32
		put(raw.Info[148:], uint32(len(lines)/16))
		put(raw.Info[168:], uint32(len(addrs)/8))
		raw.Arrays[ArrayLineInfo], raw.Arrays[ArrayJITedLineInfo] = lines, addrs
		first := 16 + len(info)
		raw.Arrays[ArrayJITedInsns] = a.Raw[first : first+80]
		raw.Arrays[ArrayJITedKSyms] = a.Raw[first+80 : first+80+24]
		raw.Arrays[ArrayJITedFuncLens] = a.Raw[first+104 : first+104+12]
		section := AppendProgram([]byte{1, 0, 0, 0}, &raw)
		programs, err := DecodePrograms("fuzz", section, 0, false, map[uint32]*btf.Types{4: types})
		if err != nil || len(programs) != 1 || len(programs[0].Funcs) != 3 {
			t.Fatalf("%d programs: %v", len(programs), err)
		}
		checkPrograms(t, programs, len(section))
	})
}

// FuzzMetadata decodes any body.
func FuzzMetadata(f *testing.F) {
	f.Add(metadataBody(false, 1, "a", "b"), false)
	f.Add(metadataBody(true, 3, "a", "b"), true)
	f.Fuzz(func(t *testing.T, body []byte, big bool) {
		m, _ := DecodeMetadata("fuzz", body, 0, big)
		if n := len(m.Values) * (metadataKeyLen + metadataValueLen); n > len(body) {
			t.Fatalf("%d values in %d bytes", len(m.Values), len(body))
		}
	})
}

func BenchmarkDecodePrograms(b *testing.B) {
	info, blobs := recorded(b, "bpf-lines")
	b.SetBytes(int64(len(info) + len(blobs)))
	b.ReportAllocs()
	for b.Loop() {
		btfs, err := DecodeBTFs("bench", blobs, 0, false)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := DecodePrograms("bench", info, 0, false, btfs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIdentity(b *testing.B) {
	programs := decodeRecorded(b, "bpf-lines")
	b.ReportAllocs()
	for b.Loop() {
		programs[0].Identity(0, "x86_64")
	}
}
