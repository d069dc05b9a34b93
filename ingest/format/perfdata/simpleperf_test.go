package perfdata

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
)

// TestSimpleperfRecords: records of simpleperf have sizes of 32 bits, and the data of their
// TRACING_DATA records within; the records behind them are all there.
func TestSimpleperfRecords(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		mmap := func(pid int32) {
			b.Mmap(perfbuild.Mmap{PID: pid, Addr: 0x1000, Len: 0x1000, Filename: "/bin/a"}, perfbuild.At{Time: 1})
		}
		tracing := func(size int) []byte {
			return append(b.Order().AppendUint32(nil, uint32(size)), make([]byte, size)...)
		}
		b.Record(uint32(TypeHeaderTracingData), 0, tracing(2012))
		mmap(1)
		b.Simpleperf(uint32(firstSimpleperf)+9, tracing(3*blockSize))
		mmap(2)
		b.Simpleperf(uint32(firstSimpleperf)+4, make([]byte, maxRecordSize-headerSize))
		mmap(3)
		b.Simpleperf(uint32(firstSimpleperf)+1, tracing(4))
		mmap(4)
		b.Simpleperf(uint32(firstSimpleperf)+200, tracing(maxRecordSize))
		mmap(5)
		f := openBuilt(t, b)
		var got []string
		r := f.AllRecords()
		for r.Next() {
			rec := r.Record()
			got = append(got, rec.Type.String())
			if rec.Type == firstSimpleperf+9 && (rec.Misc != 0 || len(rec.Body) != 0 || rec.Size != headerSize) {
				t.Errorf("%+v", rec)
			}
		}
		want := []string{"HEADER_TRACING_DATA", "MMAP", "SIMPLEPERF_TRACING_DATA", "MMAP", "SIMPLEPERF_SPLIT",
			"MMAP", "SIMPLEPERF_KERNEL_SYMBOL", "MMAP", "UNKNOWN_32968", "MMAP"}
		if r.Err() != nil || !slices.Equal(got, want) {
			t.Errorf("%q, want %q: %v", got, want, r.Err())
		}
	})
}

// TestSimpleperfCut: a record that is cut off is one, and an error.
func TestSimpleperfCut(t *testing.T) {
	b := perfbuild.New()
	b.Simpleperf(uint32(firstSimpleperf)+9, make([]byte, 1<<20))
	data := b.Bytes()
	data = data[:bytes.LastIndexByte(data[:b.DataOffset()+16], 0)+1000]
	f, err := Open("cut", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	r := f.AllRecords()
	for r.Next() {
		n++
	}
	if n != 1 || r.Err() == nil || !strings.Contains(r.Err().Error(), "overrun") {
		t.Errorf("%d records, %v", n, r.Err())
	}
}

// TestSimpleperfFacts: names of tracepoints, the version and the kernel come of META_INFO.
func TestSimpleperfFacts(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		b.Events = []perfbuild.Event{b.Events[0], b.Events[0]}
		b.Events[0].Type, b.Events[0].Config, b.Events[0].IDs = uint32(AttrTracepoint), 47, []uint64{1}
		b.Events[1].Type, b.Events[1].Config, b.Events[1].IDs = uint32(AttrTracepoint), 48, []uint64{2}
		b.SimpleperfMeta("event_type_info", "cpu-cycles,0,0\nsched:sched_switch,2,47\n,2,48\nodd\nx,2,y",
			"simpleperf_version", "1.build.7", "kernel_version", "4.19.207")
		b.FinishedRound()
		f := openBuilt(t, b)
		if got := f.Events[0].Name; got != "sched:sched_switch" {
			t.Errorf("event %q", got)
		}
		if got := f.Events[1].Name; got != "tracepoint:48" {
			t.Errorf("event %q", got)
		}
		if x := &f.Features; x.Version != "simpleperf 1.build.7" || x.OSRelease != "4.19.207" ||
			len(x.Simpleperf) != 3 || len(x.Unknown) != 0 {
			t.Errorf("%q, %q, %q, %v", x.Version, x.OSRelease, x.Simpleperf, x.Unknown)
		}
	})
}

// TestFileSymbols reads the functions of files from both forms of the feature, and each prefix of
// them; files without functions are left out.
func TestFileSymbols(t *testing.T) {
	symbols := []perfbuild.FileSymbol{{Addr: 0x2010, Size: 16, Name: "first"}, {Addr: 0x2020, Size: 8,
		Name: "_Z6secondv"}}
	files := []perfbuild.SymbolFile{
		{Path: "[kernel.kallsyms]", Symbols: symbols},
		{Path: "/lib/a.so", Type: 2, Addr: 0x2000, Offset: 0x1000, Symbols: symbols},
		{Path: "/app/base.vdex", Type: 3},
		{Path: "/lib/old.so", Type: 2, Addr: 0x2000, NoOffset: true, Symbols: symbols},
		{Path: "/lib/b.so", Type: 2},
	}
	files[2].Type = 5 // of unknown kind
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		for _, second := range []bool{false, true} {
			b := perfbuild.NewOrder(b.BigEndian)
			feature := perfbuild.FeatureFile
			if b.Files(files...); second {
				b = perfbuild.NewOrder(b.BigEndian)
				feature = perfbuild.FeatureFile2
				b.Files2(files...)
			}
			b.FinishedRound()
			f := openBuilt(t, b)
			list, err := f.FileSymbols()
			want := []FileSymbols{{Kind: FileKernel, Path: "[kernel.kallsyms]"},
				{Kind: FileELF, Path: "/lib/a.so", Addr: 0x2000, Offset: 0x1000, Placed: true},
				{Kind: FileELF, Path: "/lib/old.so", Addr: 0x2000}}
			for i := range want {
				want[i].Symbols = []FileSymbol{{Addr: 0x2010, Size: 16, Name: "first"},
					{Addr: 0x2020, Size: 8, Name: "_Z6secondv"}}
			}
			if err != nil || !reflect.DeepEqual(list, want) {
				t.Errorf("FILE2 %v: %+v, %v", second, list, err)
			}
			whole, err := f.FeatureBytes(Feature(feature), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			for n := 1; n < len(whole); n++ {
				b.Feature(feature, whole[:n])
				if list, err := openBuilt(t, b).FileSymbols(); len(list) > len(want) || err == nil && len(list) > 0 &&
					n < len(whole)/5 {
					t.Errorf("FILE2 %v, %d of %d bytes: %d files, %v", second, n, len(whole), len(list), err)
				}
			}
			huge := bytes.Replace(whole, []byte("/lib/a.so"), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff"), 1)
			b.Feature(feature, huge)
			openBuilt(t, b).FileSymbols()
		}
	})
}
