package perfdata

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/decode"
)

// FuzzOpen opens any bytes and decodes everything reachable: an error or a file, every slice inside
// the input, and all damage reported.
func FuzzOpen(f *testing.F) {
	for _, big := range []bool{false, true} {
		f.Add(everyRecord(perfbuild.NewOrder(big)).Bytes())
	}
	killed := small()
	killed.Killed = true
	f.Add(killed.Bytes())
	several := perfbuild.New()
	several.Events = []perfbuild.Event{fieldEvent(1<<25 - 1), fieldEvent(perfbuild.Identifier)}
	several.Events[1].IDs = []uint64{12}
	several.Sample(everything)
	f.Add(several.Bytes())
	noted := perfbuild.New()
	noted.Files(perfbuild.SymbolFile{Path: "/a", Type: 2, Symbols: []perfbuild.FileSymbol{{Addr: 1, Size: 2, Name: "f"}}})
	noted.Files2(perfbuild.SymbolFile{Path: "/a", Type: 2, Symbols: []perfbuild.FileSymbol{{Addr: 1, Size: 2, Name: "f"}}})
	f.Add(noted.Bytes())
	for _, name := range []string{"nochain", "clock", "pipe", "zstd", "../waits/direct"} {
		f.Add(recorded(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open("fuzz", bytes.NewReader(data), int64(len(data)))
		if (file == nil) == (err == nil) {
			t.Fatalf("file %v and error %v", file, err)
		}
		if err != nil {
			return
		}
		if file.Data.Offset < 0 || file.Data.Size < 0 || file.Data.End() > int64(len(data)) {
			t.Fatalf("data %+v of %d bytes", file.Data, len(data))
		}
		for x, sec := range file.Features.Sections {
			b, err := file.FeatureBytes(x, int64(len(data)))
			if err != nil || int64(len(b)) != sec.Size {
				t.Fatalf("%s at %+v: %d bytes, %v", x, sec, len(b), err)
			}
		}
		file.FileSymbols()
		walkFuzzed(t, file, int64(len(data)))
	})
}

// walkFuzzed decodes all records and checks their invariants.
func walkFuzzed(t *testing.T, f *File, size int64) {
	r := f.AllRecords()
	var s Sample
	next := f.Data.Offset
	for r.Next() {
		rec := r.Record()
		if rec.Offset < next || rec.Size != len(rec.Body)+headerSize ||
			rec.Offset+int64(rec.Size) > size || r.Offset() < rec.Offset+int64(rec.Size) {
			t.Fatalf("record %s at %#x of %d bytes, the one before ended at %#x", rec.Type,
				rec.Offset, rec.Size, next)
		}
		next = r.Offset()
		if i, ok := f.EventOf(rec); ok && i >= len(f.Events) {
			t.Fatalf("event %d of %d", i, len(f.Events))
		}
		_, err := f.SampleID(rec)
		checkError(t, err)
		if rec.Type == TypeSample {
			err := f.DecodeSample(rec, &s)
			if err == nil && (len(s.Chain)%8 != 0 || len(s.Chain) > len(rec.Body)) {
				t.Fatalf("chain of %d bytes in %d", len(s.Chain), len(rec.Body))
			}
			if !slices.ContainsFunc(f.Events, func(ev Event) bool { return err == ev.Err }) {
				checkError(t, err)
			}
		} else if get := getters[rec.Type]; get != nil {
			_, err := get(f, rec)
			checkError(t, err)
		}
	}
	checkError(t, r.Err())
}

// checkError requires every error to have a position, or to be a sentinel.
func checkError(t *testing.T, err error) {
	var de *decode.Error
	if err != nil && !errors.As(err, &de) && !errors.Is(err, ErrUnknownID) {
		t.Fatalf("error %v", err)
	}
}

// FuzzRecords replaces the records of a valid file by any bytes, for an event with all fields and a
// file of two events.
func FuzzRecords(f *testing.F) {
	for _, big := range []bool{false, true} {
		b := everyRecord(perfbuild.NewOrder(big))
		whole := b.Bytes()
		f.Add(big, uint64(allTrailer), whole[b.DataOffset():b.DataOffset()+b.Len()])
		s := perfbuild.NewOrder(big)
		s.Events = []perfbuild.Event{fieldEvent(1<<25 - 1)}
		s.Sample(everything)
		f.Add(big, uint64(1<<25-1), s.Bytes()[s.DataOffset():])
	}
	f.Fuzz(func(t *testing.T, big bool, sampleType uint64, data []byte) {
		b := perfbuild.NewOrder(big)
		b.Events = []perfbuild.Event{fieldEvent(sampleType), fieldEvent(sampleType ^ perfbuild.CPU)}
		b.Events[0].Flags |= perfbuild.SampleIDAll
		b.Events[1].IDs = []uint64{12}
		b.Events[1].Flags = b.Events[0].Flags
		b.Damage(data)
		b.FeatureString(perfbuild.FeatureHostname, "host")
		whole := b.Bytes()
		walkFuzzed(t, openBytes(t, whole), int64(len(whole)))
	})
}
