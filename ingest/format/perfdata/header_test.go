package perfdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/decode"
)

func TestIsPerfData(t *testing.T) {
	for head, want := range map[string]bool{
		"PERFILE2": true, "2ELIFREP": true, "PERFFILE": true, "PERFILE2more": true,
		"": false, "PERFILE": false, "\x7fELF\x02\x01\x01\x00": false,
	} {
		if IsPerfData([]byte(head)) != want {
			t.Errorf("%q: not %v", head, want)
		}
	}
}

// patch returns a copy of data with a 64-bit word changed.
func patch(data []byte, at int, v uint64) []byte {
	data = bytes.Clone(data)
	binary.LittleEndian.PutUint64(data[at:], v)
	return data
}

// Offsets in struct perf_file_header.
const (
	atHeaderSize = 8
	atAttrSize   = 16
	atAttrs      = 24
	atAttrsSize  = 32
	atData       = 40
	atDataSize   = 48
)

// small returns a file of one event and two records.
func small() *perfbuild.File {
	b := perfbuild.New()
	b.Comm(1, 1, "x", false, perfbuild.At{Time: 1})
	b.Sample(perfbuild.Sample{PID: 1, Time: 2, Chain: []uint64{perfbuild.ContextUser, 5}})
	b.FeatureString(perfbuild.FeatureHostname, "host")
	return b
}

// TestOpenErrors has files that cannot be opened, with the reasons.
func TestOpenErrors(t *testing.T) {
	good := small().Bytes()
	for _, tt := range []struct {
		name string
		data []byte
		is   error
		text string
	}{
		{name: "empty", is: ErrNotPerfData},
		{name: "other", data: []byte("\x7fELF and more bytes than a magic"), is: ErrNotPerfData},
		{name: "version 1", data: []byte("PERFFILE" + strings.Repeat("\x00", 100)),
			text: "header has size 0"},
		{name: "magic only", data: []byte("PERFILE2"), is: ErrCutHeader, text: "8 bytes wanted"},
		{name: "cut in the header", data: good[:50], is: ErrCutHeader, text: "8 bytes wanted"},
		{name: "cut header", data: good[:60], text: "the file ends at 0x3c"},
		{name: "header size 20", data: patch(good, atHeaderSize, 20),
			text: "header has size 20"},
		{name: "attr size 8", data: patch(good, atAttrSize, 8), text: "attr size 8 is not in"},
		{name: "attr size huge", data: patch(good, atAttrSize, 1<<40), text: "is not in"},
		{name: "attrs in header", data: patch(good, atAttrs, 8), text: "inside the header"},
		{name: "data in header", data: patch(good, atData, 8), text: "inside the header"},
		{name: "data over attrs", data: patch(good, atData, 120), text: "overlap"},
		{name: "attrs behind the file", data: patch(good, atAttrs, 1<<40),
			text: "the file ends at"},
		{name: "attrs overflow", data: patch(good, atAttrs, math.MaxUint64-5),
			text: "beyond the largest file offset"},
		{name: "attr's own size", data: patch(good, 120, 0x10_00000000),
			text: "attr has size 16"},
	} {
		f, err := Open("x.data", bytes.NewReader(tt.data), int64(len(tt.data)))
		if f != nil || err == nil || !strings.HasPrefix(err.Error(), "x.data") ||
			!strings.Contains(err.Error(), tt.text) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v, %v", tt.name, f, err)
		}
		var de *decode.Error
		if tt.is == nil && !errors.As(err, &de) {
			t.Errorf("%s: %T is no *decode.Error", tt.name, err)
		}
	}
}

// TestHeaderSizes opens old and longer headers.
func TestHeaderSizes(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		for _, size := range []int{72, 104, 112, 200} {
			b := perfbuild.NewOrder(b.BigEndian)
			b.HeaderSize = size
			b.Comm(1, 1, "x", false, perfbuild.At{})
			f := openBuilt(t, b)
			if n := len(records(t, f)); n != 1 || f.Events[0].Name != "cpu-clock" {
				t.Errorf("header of %d: %d records, event %q", size, n, f.Events[0].Name)
			}
		}
	})
}

// TestAttrSizes opens attrs from VER0 to unknown future ones.
func TestAttrSizes(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		for _, size := range []int{64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 512} {
			b := perfbuild.NewOrder(b.BigEndian)
			b.AttrSize = size
			ev := fieldEvent(perfbuild.IP | perfbuild.TID | perfbuild.Callchain)
			ev.Flags = perfbuild.SampleIDAll | perfbuild.UseClockID | perfbuild.Precise1
			ev.Type, ev.Config, ev.BPType, ev.Config1 = 5, 7, 3, 0x1000
			ev.ClockID, ev.MaxStack, ev.StackUser = -2, 127, 8192
			b.Events = []perfbuild.Event{ev, ev}
			b.Events[1].IDs = []uint64{12}
			b.Sample(perfbuild.Sample{PID: 4, Chain: []uint64{perfbuild.ContextUser, 9}})
			f := openBuilt(t, b)
			want := Attr{Type: AttrBreakpoint, Size: uint32(size), Config: 7, SamplePeriod: 777,
				SampleType: SampleIP | SampleTID | SampleCallchain, ReadFormat: 0b10111,
				Flags:  FlagSampleIDAll | FlagUseClockID | 1<<preciseShift,
				BPType: 3, Config1: 0x1000}
			if size >= 80 {
				want.BranchSampleType = ev.BranchSampleType
			}
			if size >= 96 {
				want.SampleRegsUser, want.SampleStackUser, want.ClockID = ev.RegsUser, 8192, -2
			}
			if size >= 104 {
				want.SampleRegsIntr = ev.RegsIntr
			}
			if size >= 112 {
				want.SampleMaxStack = 127
			}
			if len(f.Events) != 2 || f.Events[0].Attr != want ||
				!slices.Equal(f.Events[1].IDs, []uint64{12}) {
				t.Errorf("size %d: got %+v\nwant %+v", size, f.Events, want)
			}
			if p := f.Events[0].Attr.PreciseIP(); p != 1 {
				t.Errorf("size %d: precise_ip %d", size, p)
			}
			recs := records(t, f)
			var s Sample
			if err := f.DecodeSample(&recs[0], &s); err != nil || s.PID != 4 {
				t.Errorf("size %d: sample %+v, %v", size, s, err)
			}
		}
	})
}

// TestPreciseIP checks the two-bit field's value in both orders.
func TestPreciseIP(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		for precise := range 4 {
			b := perfbuild.NewOrder(b.BigEndian)
			b.Events[0].Flags |= uint64(precise) << 15
			b.FinishedRound()
			if got := openBuilt(t, b).Events[0].Attr.PreciseIP(); got != precise {
				t.Errorf("precise_ip %d, want %d", got, precise)
			}
		}
	})
}

// TestKilled opens the file of a killed recorder: records to the end of the file, the last one half
// written.
func TestKilled(t *testing.T) {
	b := small()
	b.Killed = true
	data := b.Bytes()
	for _, cut := range []int{0, 3} {
		data := data[:len(data)-cut]
		f := openBytes(t, data)
		if len(f.Warnings) != 1 || !errors.Is(f.Warnings[0], ErrUnfinished) {
			t.Errorf("warnings %v", f.Warnings)
		}
		recs, err := readAll(f.AllRecords())
		if cut == 0 && (err != nil || len(recs) != 2) {
			t.Errorf("whole: %d records, %v", len(recs), err)
		}
		var de *decode.Error
		if cut != 0 && (len(recs) != 1 || !errors.As(err, &de) ||
			de.Offset != f.Data.Offset+int64(recs[0].Size)) {
			t.Errorf("cut: %d records, %v", len(recs), err)
		}
	}
}

// TestKilledAtOnce opens a file that ends where the data should begin.
func TestKilledAtOnce(t *testing.T) {
	f := openBytes(t, perfbuild.New().Bytes())
	if len(f.Warnings) != 1 || !errors.Is(f.Warnings[0], ErrUnfinished) || len(records(t, f)) != 0 {
		t.Errorf("warnings %v", f.Warnings)
	}
}

// TestManyWarnings bounds the number of warnings.
func TestManyWarnings(t *testing.T) {
	b := perfbuild.New()
	b.Events = slices.Repeat(b.Events, 2*maxWarnings)
	b.FinishedRound()
	data := b.Bytes()
	attrs := int(binary.LittleEndian.Uint64(data[atAttrs:]))
	for i := range b.Events {
		data = patch(data, attrs+(128+16)*i+128, 1<<40)
	}
	if f := openBytes(t, data); len(f.Warnings) != maxWarnings || len(f.Events) != 2*maxWarnings {
		t.Errorf("%d warnings of %d events", len(f.Warnings), len(f.Events))
	}
}

// TestCutOff cuts a file at every length: Open returns an error, or a file with a prefix of all
// records and a warning.
func TestCutOff(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		sweep(t, everyRecord(b).Bytes(), 1)
	})
}

// everyRecord fills a builder with every kind of record and feature.
func everyRecord(b *perfbuild.File) *perfbuild.File {
	b.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	for _, tt := range sideBand {
		tt.build(b)
	}
	b.Auxtrace([]byte("a trace behind its record"))
	b.Record(200, 0, []byte("new type"))
	b.FinishedRound()
	b.Sample(everything)
	everyFeature(b)
	return b
}

// sweep opens every step-th prefix of a file.
func sweep(t *testing.T, data []byte, step int) {
	t.Helper()
	whole := openBytes(t, data)
	all, _ := readAll(whole.AllRecords())
	for n := 0; n < len(data); n += step {
		f, err := Open("cut", bytes.NewReader(data[:n]), int64(n))
		if (f == nil) == (err == nil) {
			t.Fatalf("%d bytes: file %v and error %v", n, f, err)
		}
		if err != nil {
			if int64(n) >= whole.Header.Attrs.End() && int64(n) >= whole.Data.Offset {
				t.Fatalf("%d bytes: %v, and the attrs are whole", n, err)
			}
			continue
		}
		recs, err := readAll(f.AllRecords())
		if len(f.Warnings) == 0 && err == nil {
			t.Fatalf("%d of %d bytes: nothing said", n, len(data))
		}
		if !slices.EqualFunc(recs, all[:len(recs)], sameRecord) {
			t.Fatalf("%d bytes: other records", n)
		}
		if int64(n) >= whole.Data.End() && len(recs) != len(all) {
			t.Fatalf("%d bytes: %d of %d records, and all are there", n, len(recs), len(all))
		}
	}
}

func sameRecord(a, b Record) bool {
	return a.Type == b.Type && a.Misc == b.Misc && a.Size == b.Size && a.Offset == b.Offset &&
		bytes.Equal(a.Body, b.Body)
}

// TestEventIDsBehindFile loses the IDs, not the file.
func TestEventIDsBehindFile(t *testing.T) {
	b := small()
	data := b.Bytes()
	attrs := int(binary.LittleEndian.Uint64(data[atAttrs:]))
	for _, v := range []uint64{1 << 40, math.MaxUint64} {
		f := openBytes(t, patch(data, attrs+128+8, v))
		if len(f.Warnings) != 1 || len(f.Events) != 1 || f.Events[0].IDs != nil {
			t.Errorf("size %#x: %+v, warnings %v", v, f.Events, f.Warnings)
		}
		if n := len(records(t, f)); n != 2 {
			t.Errorf("size %#x: %d records", v, n)
		}
	}
}

func TestNoEvents(t *testing.T) {
	b := perfbuild.New()
	b.FinishedRound()
	b.Events = nil
	b.Record(9, User, le(1, 2))
	f := openBytes(t, b.Bytes())
	if len(f.Warnings) != 1 {
		t.Errorf("warnings %v", f.Warnings)
	}
	recs := records(t, f)
	var s Sample
	if err := f.DecodeSample(&recs[1], &s); !errors.Is(err, ErrUnknownID) {
		t.Errorf("sample without an event: %v", err)
	}
	if _, ok := f.EventOf(&recs[1]); ok {
		t.Error("a sample has an event that is not there")
	}
}

// failing gives an I/O error from an offset on.
type failing struct {
	io.ReaderAt
	from int64
}

var errDisk = errors.New("disk on fire")

func (r failing) ReadAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > r.from {
		return 0, errDisk
	}
	return r.ReaderAt.ReadAt(b, at)
}

// TestReadError returns the file's own error, at any position.
func TestReadError(t *testing.T) {
	data := small().Bytes()
	whole := openBytes(t, data)
	for n := range int64(len(data)) {
		f, err := Open("x", failing{bytes.NewReader(data), n}, int64(len(data)))
		if err == nil {
			_, err = readAll(f.AllRecords())
			if err == nil && len(f.Warnings) > 0 {
				err = f.Warnings[0]
			}
		}
		if !errors.Is(err, errDisk) {
			t.Fatalf("failing from %d (data ends at %d): %v", n, whole.Data.End(), err)
		}
	}
}
