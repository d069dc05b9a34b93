package perfdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
)

// writtenEvents are the dummy event of a capture, with two IDs.
func writtenEvents() []Event {
	return []Event{{
		Attr: Attr{Type: AttrSoftware, Config: 9, SamplePeriod: 1,
			SampleType: SampleTID | SampleTime | SampleCPU | SampleIdentifier,
			Flags:      FlagSampleIDAll | FlagKSymbol | FlagBPFEvent | FlagUseClockID | 2<<preciseShift,
			ClockID:    1, SampleMaxStack: 127},
		Name: "dummy:u", IDs: []uint64{41, 42},
	}}
}

// writeTo makes a file with the writer and returns its path.
func writeTo(t *testing.T, big bool, body func(*Writer)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "written.data")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(f, big, writtenEvents())
	if err != nil {
		t.Fatal(err)
	}
	body(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func openPath(t *testing.T, path string) *File {
	t.Helper()
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	fi, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open("written.data", r, fi.Size())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var writtenID = buildid.New([]byte{0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4})

// writeEverything uses every method of a Writer.
func writeEverything(w *Writer) {
	at := SampleID{PID: 7, TID: 8, Time: 99, CPU: 3, ID: 42}
	w.WriteMmap(&Mmap{PID: -1, Addr: 0xffffffff81000000, Len: 0x1000000, PgOff: 0xffffffff81000000,
		BuildID: writtenID, Filename: []byte("[kernel.kallsyms]_text")}, CPUModeKernel, SampleID{})
	w.WriteMmap(&Mmap{PID: 5, TID: 5, Addr: 0x1000, Len: 0x2000, PgOff: 3, Data: true,
		Filename: []byte("/bin/x")}, CPUModeUser, SampleID{})
	w.WriteKSymbol(&KSymbol{Addr: 0xffffffffc0000000, Len: 77, Kind: KSymbolBPF,
		Name: []byte("bpf_prog_0102030405060708_f")}, at)
	w.WriteBPFEvent(&BPFEvent{Kind: BPFLoad, ID: 9, Tag: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}}, at)
	w.WriteKSymbol(&KSymbol{Addr: 0xffffffffc0000000, Len: 77, Kind: KSymbolBPF, Unregister: true,
		Name: []byte("bpf_prog_0102030405060708_f")}, at)
	w.SetString(FeatureHostname, "host")
	w.SetString(FeatureOSRelease, "6.18.0")
	w.SetString(FeatureArch, "x86_64")
	w.SetString(FeatureCPUID, "") // left out
	w.SetBuildIDs([]BuildIDEntry{{ID: writtenID, PID: -1, CPUMode: CPUModeKernel,
		Filename: "[kernel.kallsyms]"}})
}

// TestWriterRoundTrip reads back a Writer's file, in both byte orders.
func TestWriterRoundTrip(t *testing.T) {
	for _, big := range []bool{false, true} {
		f := openPath(t, writeTo(t, big, writeEverything))
		if f.BigEndian != big || len(f.Warnings) > 0 {
			t.Fatalf("big-endian %v, warnings %v", f.BigEndian, f.Warnings)
		}
		want := writtenEvents()[0]
		want.Attr.Size = writtenAttrSize
		if got := f.Events[0]; got.Attr != want.Attr || got.Name != want.Name ||
			!slices.Equal(got.IDs, want.IDs) {
			t.Errorf("event %+v, want %+v", got, want)
		}
		x := f.Features
		if x.Hostname != "host" || x.OSRelease != "6.18.0" || x.Arch != "x86_64" ||
			x.Has(FeatureCPUID) {
			t.Errorf("features %+v", x)
		}
		if want := []BuildIDEntry{{ID: writtenID, PID: -1, CPUMode: CPUModeKernel,
			Filename: "[kernel.kallsyms]"}}; !reflect.DeepEqual(x.BuildIDs, want) {
			t.Errorf("build IDs %+v", x.BuildIDs)
		}
		checkRecords(t, f)
	}
}

// checkRecords compares the records of writeEverything with the expected ones.
func checkRecords(t *testing.T, f *File) {
	t.Helper()
	at := SampleID{Has: trailerBits & (SampleTID | SampleTime | SampleCPU | SampleIdentifier),
		PID: 7, TID: 8, Time: 99, CPU: 3, ID: 42}
	var got []string
	for r := f.AllRecords(); r.Next(); {
		rec := r.Record()
		id, err := f.SampleID(rec)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Type != TypeMmap && rec.Type != TypeMmap2 && id != at {
			t.Errorf("%s: trailer %+v, want %+v", rec.Type, id, at)
		}
		got = append(got, describeWritten(t, f, rec))
	}
	want := []string{
		"MMAP2 -1/0 ffffffff81000000+1000000 ffffffff81000000 deadbeef01020304 [kernel.kallsyms]_text",
		"MMAP 5/5 1000+2000 3 data /bin/x",
		"KSYMBOL ffffffffc0000000+77 1 false bpf_prog_0102030405060708_f",
		"BPF_EVENT 1 9 0102030405060708",
		"KSYMBOL ffffffffc0000000+77 1 true bpf_prog_0102030405060708_f",
	}
	if !slices.Equal(got, want) {
		t.Errorf("records\n%q\nwant\n%q", got, want)
	}
}

func describeWritten(t *testing.T, f *File, rec *Record) string {
	t.Helper()
	var m Mmap
	var k KSymbol
	var e BPFEvent
	var err error
	var s string
	switch rec.Type {
	case TypeMmap:
		err = f.Mmap(rec, &m)
		s = fmt.Sprintf("%d/%d %x+%x %x data %s", m.PID, m.TID, m.Addr, m.Len, m.PgOff, m.Filename)
		if !m.Data {
			t.Errorf("%s is no data", s)
		}
	case TypeMmap2:
		err = f.Mmap(rec, &m)
		s = fmt.Sprintf("%d/%d %x+%x %x %s %s", m.PID, m.TID, m.Addr, m.Len, m.PgOff,
			m.BuildID.Hex(), m.Filename)
		if rec.CPUMode() != CPUModeKernel || !m.BuildID.Exact() {
			t.Errorf("%s: mode %d", s, rec.CPUMode())
		}
	case TypeKSymbol:
		err = f.KSymbol(rec, &k)
		s = fmt.Sprintf("%x+%d %d %v %s", k.Addr, k.Len, k.Kind, k.Unregister, k.Name)
	case TypeBPFEvent:
		err = f.BPFEvent(rec, &e)
		s = fmt.Sprintf("%d %d %x", e.Kind, e.ID, e.Tag)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec.Type.String() + " " + s
}

// TestWriterWithoutRecords: a file without records does not look killed.
func TestWriterWithoutRecords(t *testing.T) {
	f := openPath(t, writeTo(t, false, func(w *Writer) { w.SetString(FeatureHostname, "h") }))
	if len(f.Warnings) > 0 || f.Features.Hostname != "h" || f.Data.Size != headerSize {
		t.Errorf("warnings %v, host %q, %d bytes", f.Warnings, f.Features.Hostname, f.Data.Size)
	}
}

// TestWriterBeforeClose reads the file of a killed writer.
func TestWriterBeforeClose(t *testing.T) {
	var w memoryFile
	x, err := NewWriter(&w, false, writtenEvents())
	if err != nil {
		t.Fatal(err)
	}
	x.WriteBPFEvent(&BPFEvent{Kind: BPFLoad}, SampleID{})
	x.buf.Flush()
	f, err := Open("killed", bytes.NewReader(w.b), int64(len(w.b)))
	if err != nil || len(f.Warnings) != 1 || !errors.Is(f.Warnings[0], ErrUnfinished) {
		t.Fatalf("%v, %v", f.Warnings, err)
	}
	r := f.AllRecords()
	if !r.Next() || r.Record().Type != TypeBPFEvent || r.Next() || r.Err() != nil {
		t.Errorf("record %+v, then %v", r.Record(), r.Err())
	}
}

// TestWriterRaw writes raw records unchanged, and refuses unreadable ones.
func TestWriterRaw(t *testing.T) {
	raw := []byte{68, 0, 0, 0, 0, 0, 8, 0, 82, 0, 0, 0, 0, 0, 8, 0}
	path := writeTo(t, false, func(w *Writer) {
		if err := w.WriteRecord(raw); err != nil || w.Len() != int64(len(raw)) {
			t.Errorf("%d bytes, %v", w.Len(), err)
		}
		w.SetFeatureFrom(FeatureBPFBTF, strings.NewReader("blob"))
	})
	f := openPath(t, path)
	var types []Type
	for r := f.AllRecords(); r.Next(); {
		types = append(types, r.Record().Type)
	}
	if !slices.Equal(types, []Type{TypeFinishedRound, TypeFinishedInit}) {
		t.Errorf("types %v", types)
	}
	if b, err := f.FeatureBytes(FeatureBPFBTF, 100); string(b) != "blob" || err != nil {
		t.Errorf("BTF %q, %v", b, err)
	}
	for _, bad := range [][]byte{raw[:7], {68, 0, 0, 0, 0, 0, 7, 0}, {68, 0, 0, 0, 0, 0, 16, 0}} {
		w, err := NewWriter(&memoryFile{}, false, writtenEvents())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteRecord(bad); !errors.Is(err, ErrRecordSize) {
			t.Errorf("%x: %v", bad, err)
		}
		if err := w.Close(); !errors.Is(err, ErrRecordSize) {
			t.Errorf("%x: Close: %v", bad, err)
		}
	}
	w, _ := NewWriter(&memoryFile{}, false, writtenEvents())
	long := KSymbol{Name: make([]byte, maxRecordSize)}
	if err := w.WriteKSymbol(&long, SampleID{}); !errors.Is(err, ErrRecordSize) {
		t.Errorf("a name of 64 KiB: %v", err)
	}
	if _, err := NewWriter(&memoryFile{}, false, nil); err == nil {
		t.Error("a file without events")
	}
}

// memoryFile is an io.WriteSeeker in memory.
type memoryFile struct {
	b  []byte
	at int64
}

func (m *memoryFile) Write(p []byte) (int, error) {
	m.b = append(m.b[:m.at], p...)
	m.at += int64(len(p))
	return len(p), nil
}

func (m *memoryFile) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		m.at = 0
	}
	m.at += offset
	return m.at, nil
}

// TestLivePerfReadsWritten reads a written file with perf itself.
func TestLivePerfReadsWritten(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") != "1" {
		t.Skip("SKIPPED: perf is asked only with SYMBOLIZE_LIVE=1")
	}
	for _, big := range []bool{NativeBigEndian(), !NativeBigEndian()} {
		path := writeTo(t, big, writeEverything)
		for _, tt := range []struct {
			args []string
			want []string
		}{
			{args: []string{"script", "-f", "--show-bpf-events", "-i", path},
				want: []string{"PERF_RECORD_KSYMBOL addr ffffffffc0000000 len 77",
					"bpf_prog_0102030405060708_f", "id 9"}},
			{args: []string{"report", "-f", "--header-only", "-i", path},
				want: []string{"hostname : host", "os release : 6.18.0", "arch : x86_64", "dummy:u"}},
			{args: []string{"buildid-list", "-f", "-i", path}, want: []string{"deadbeef01020304"}},
		} {
			if big != NativeBigEndian() && tt.args[0] == "script" {
				continue // perf itself cannot swap KSYMBOL and BPF_EVENT
			}
			out, err := exec.CommandContext(t.Context(), "perf", tt.args...).CombinedOutput()
			for _, want := range tt.want {
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("big-endian %v: perf %v: no %q in\n%s%v", big, tt.args, want, out, err)
				}
			}
		}
	}
}
