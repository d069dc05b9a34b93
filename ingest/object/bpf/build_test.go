package bpf

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/format/perfdata"
)

// tagOf is a recognisable tag.
func tagOf(b byte) (t [8]byte) {
	for i := range t {
		t[i] = b
	}
	return t
}

// code is n recognisable bytes.
func code(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }

// sample is a program of three functions with addresses in no order.
func sample() bpfbuild.Program {
	const file, text = "src/a.bpf.c", "	return x;"
	return bpfbuild.Program{
		Type: 17, ID: 9, BTFID: 4, UID: 1000, Tag: tagOf(0xaa), Name: "a_program_of_so",
		LoadTime: 123456789, RunTime: 55, RunCount: 5,
		Funcs: []bpfbuild.Func{
			{Name: "a_program_of_some_length", Tag: tagOf(0x10), Start: 0xffffffffc0025b94,
				Code: code(1, 40), Lines: []bpfbuild.Line{
					{At: 0, Insn: 0, Line: 3, Column: 0, File: file, Source: "int a(void *ctx)"},
					{At: 8, Insn: 2, Line: 0, Column: 0},
					{At: 11, Insn: 3, Line: 5, Column: 7, File: file, Source: text},
					{At: 20, Insn: 4, Line: 6, Column: 1, File: file, Source: "}"},
					{At: 20, Insn: 5, Line: 7, Column: 1023, File: "inc.h", Source: text},
				}},
			{Name: "helper", Tag: tagOf(0x11), Start: 0xffffffffc002218c, Code: code(2, 33),
				Lines: []bpfbuild.Line{
					{At: 0, Insn: 6, Line: 0},
					{At: 4, Insn: 7, Line: 9, Column: 2, File: file, Source: text},
				}},
			{Name: "other", Tag: tagOf(0x12), Start: 0xffffffffc0022100, Code: code(3, 7)},
		},
	}
}

// decodeBuilt decodes built programs that must be valid.
func decodeBuilt(t testing.TB, big bool, programs ...bpfbuild.Program) []Program {
	t.Helper()
	info, blobs := bpfbuild.Sections(big, programs...)
	btfs, err := DecodeBTFs("test", blobs, 0, big)
	if err != nil {
		t.Fatal(err)
	}
	out, err := DecodePrograms("test", info, 0x1000, big, btfs)
	if err != nil || len(out) != len(programs) {
		t.Fatalf("%d programs of %d: %v", len(out), len(programs), err)
	}
	return out
}

// recorded returns the two sections of a recorded capture.
func recorded(t testing.TB, name string) (info, blobs []byte) {
	t.Helper()
	f, err := os.Open(filepath.Join("../../../fixtures/captures", name+".data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	p, err := perfdata.Open(name, f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	if info, err = p.FeatureBytes(perfdata.FeatureBPFProgInfo, 1<<20); err != nil {
		t.Fatal(err)
	}
	if blobs, err = p.FeatureBytes(perfdata.FeatureBPFBTF, 1<<20); err != nil {
		t.Fatal(err)
	}
	return info, blobs
}

// decodeRecorded decodes the programs of a recorded capture.
func decodeRecorded(t testing.TB, name string) []Program {
	t.Helper()
	info, blobs := recorded(t, name)
	btfs, err := DecodeBTFs(name, blobs, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	out, err := DecodePrograms(name, info, 0, false, btfs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
