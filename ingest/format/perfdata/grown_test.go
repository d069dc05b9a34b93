package perfdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// kernelRecord makes a record with a trailer of TID, TIME, CPU and IDENTIFIER, and the
// bytes that the kernel adds after it if other recorders listen.
func kernelRecord(o binary.AppendByteOrder, kind Type, body []byte, time, id uint64, more int) []byte {
	const trailer = 32
	b := o.AppendUint32(nil, uint32(kind))
	b = o.AppendUint16(b, 0)
	b = o.AppendUint16(b, uint16(headerSize+len(body)+trailer+more))
	b = append(b, body...)
	b = o.AppendUint32(b, 7)
	b = o.AppendUint32(b, 8)
	b = o.AppendUint64(b, time)
	b = o.AppendUint32(b, 3)
	b = o.AppendUint32(b, 0)
	b = o.AppendUint64(b, id)
	return append(b, bytes.Repeat([]byte{0xee}, more)...) // earlier content of the ring
}

// TestGrownRecords reads KSYMBOL and BPF_EVENT records in the form for several events
// that ask for them: with uninitialised bytes after the trailer.
func TestGrownRecords(t *testing.T) {
	for _, big := range []bool{false, true} {
		var o interface {
			binary.AppendByteOrder
			binary.ByteOrder
		} = binary.LittleEndian
		if big {
			o = binary.BigEndian
		}
		kinds := SampleTID | SampleTime | SampleCPU | SampleIdentifier
		event := func(id uint64, more SampleType) Event {
			return Event{Name: "x", IDs: []uint64{id}, Attr: Attr{Type: AttrSoftware,
				SampleType: kinds | more, Flags: FlagSampleIDAll}}
		}
		for _, events := range [][]Event{{event(5, 0)}, {event(4, SampleStreamID), event(5, 0)}} {
			name := append([]byte("bpf_prog_0102030405060708_f"), 0, 0, 0, 0, 0) // 27, padded to 32
			ksymbol := o.AppendUint32(o.AppendUint64(nil, 0xffffffffc0001000), 64)
			ksymbol = append(o.AppendUint16(o.AppendUint16(ksymbol, 1), 1), name...)
			load := o.AppendUint32(o.AppendUint16(o.AppendUint16(nil, BPFLoad), 0), 9)
			load = append(load, 1, 2, 3, 4, 5, 6, 7, 8)
			for _, more := range []int{0, 24, 32, 64} {
				path := filepath.Join(t.TempDir(), "perf.data")
				file, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				w, err := NewWriter(file, big, events)
				if err != nil {
					t.Fatal(err)
				}
				_ = w.WriteRecord(kernelRecord(o, TypeKSymbol, ksymbol, 50, 5, more))
				_ = w.WriteRecord(kernelRecord(o, TypeBPFEvent, load, 60, 5, more))
				if err := errors.Join(w.Close(), file.Close()); err != nil {
					t.Fatal(err)
				}
				checkGrown(t, openPath(t, path), more)
			}
		}
	}
}

// checkGrown reads the two records.
func checkGrown(t *testing.T, f *File, more int) {
	t.Helper()
	var k KSymbol
	var b BPFEvent
	n := 0
	for r := f.AllRecords(); r.Next(); n++ {
		rec := r.Record()
		id, err := f.SampleID(rec)
		switch rec.Type {
		case TypeKSymbol:
			if err == nil {
				err = f.KSymbol(rec, &k)
			}
			if err != nil || id.Time != 50 || string(k.Name) != "bpf_prog_0102030405060708_f" ||
				!k.Unregister {
				t.Errorf("%d bytes more: %+v, %+v, %v", more, id, k, err)
			}
		case TypeBPFEvent:
			if err == nil {
				err = f.BPFEvent(rec, &b)
			}
			if err != nil || id.Time != 60 || b.ID != 9 || b.Tag[7] != 8 {
				t.Errorf("%d bytes more: %+v, %+v, %v", more, id, b, err)
			}
		}
		if id.TID != 8 || id.CPU != 3 || id.ID != 5 {
			t.Errorf("%d bytes more: %+v", more, id)
		}
	}
	if n != 2 {
		t.Errorf("%d records", n)
	}
}
