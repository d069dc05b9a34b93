package perfdata

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/decode"
)

// many returns a file of more than three blocks.
func many(big bool) *perfbuild.File {
	b := perfbuild.NewOrder(big)
	chain := make([]uint64, 5000)
	for i := range 200 {
		b.Comm(int32(i), int32(i), "short", false, perfbuild.At{Time: uint64(i)})
		b.Sample(perfbuild.Sample{PID: int32(i), Time: uint64(i), IP: 1, Chain: chain[:i*25]})
		b.Record(200, 7, bytes.Repeat([]byte{byte(i)}, i%13)) // not aligned
		if i%50 == 0 {
			b.Auxtrace(make([]byte, 1<<20+i))
			b.Auxtrace(nil)
		}
		b.Sample(perfbuild.Sample{PID: int32(i), Time: uint64(i), IP: 1, Chain: chain})
	}
	return b
}

// TestRecords requires each record once, for any division into ranges.
func TestRecords(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		f := openBuilt(t, many(b.BigEndian))
		all := records(t, f)
		if len(all) != 200*4+2*4 {
			t.Fatalf("%d records", len(all))
		}
		if f.Data.Size < 3*blockSize {
			t.Fatalf("the data are only %d bytes", f.Data.Size)
		}
		for i := range all[:len(all)-1] {
			end := all[i].Offset + int64(all[i].Size)
			if all[i].Type == TypeAuxtrace {
				end += int64(decode.U64(all[i].Body, f.BigEndian))
			}
			if all[i+1].Offset != end {
				t.Fatalf("record %d ends at %#x, the next starts at %#x", i, end, all[i+1].Offset)
			}
		}
		r := f.Records(0, 0)
		for _, chunk := range []int64{1 << 10, 100 << 10, 1 << 20, 5 << 20} {
			var got []Record
			for at := f.Data.Offset; at < f.Data.End(); at = r.Offset() {
				r.Reset(at, at+chunk)
				part, err := readAll(r)
				if err != nil || len(part) == 0 && r.Offset() <= at {
					t.Fatalf("chunk of %d at %#x: %d records, %v", chunk, at, len(part), err)
				}
				got = append(got, part...)
			}
			if !slices.EqualFunc(got, all, sameRecord) {
				t.Errorf("chunks of %d: other records", chunk)
			}
		}
	})
}

// TestRecordsClipped requests more than the data section.
func TestRecordsClipped(t *testing.T) {
	f := openBuilt(t, small())
	for _, tt := range []struct {
		from, to int64
		want     int
	}{{from: 0, to: 1 << 40, want: 2}, {from: -5, to: f.Data.End(), want: 2}, {from: f.Data.End(),
		to: 1 << 40, want: 0}, {from: f.Data.Offset, to: 0, want: 0},
		{from: f.Data.Offset, to: f.Data.Offset + 1, want: 1}, {from: f.Data.Offset + 5,
			to: f.Data.Offset + 5, want: 0}} {
		recs, err := readAll(f.Records(tt.from, tt.to))
		if len(recs) != tt.want || err != nil {
			t.Errorf("[%d,%d): %d records, %v; want %d", tt.from, tt.to, len(recs), err, tt.want)
		}
	}
}

// TestDamagedRecords requires all records before the damage, and its position.
func TestDamagedRecords(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage []byte
		want   string
	}{
		{name: "size 0", damage: make([]byte, 16), want: "has size 0"},
		{name: "size 7", damage: []byte{9, 0, 0, 0, 0, 0, 7, 0, 1, 2, 3}, want: "has size 7"},
		{name: "overrun", damage: []byte{9, 0, 0, 0, 0, 0, 0xff, 0xff, 1}, want: "overruns"},
		{name: "half a header", damage: []byte{9, 0, 0}, want: "less than a record's header"},
	} {
		b := small()
		at := b.DataOffset() + b.Len()
		b.Damage(tt.damage)
		f := openBuilt(t, b)
		r := f.AllRecords()
		recs, err := readAll(r)
		var de *decode.Error
		if len(recs) != 2 || !errors.As(err, &de) || de.Offset != at ||
			!strings.Contains(de.Reason, tt.want) {
			t.Errorf("%s: %d records, %v; want offset %#x", tt.name, len(recs), err, at)
		}
		if r.Next() || r.Err() != err {
			t.Errorf("%s: it goes on after an error", tt.name)
		}
	}
}

// TestDamagedAuxtrace returns a record with a trace that overruns the data, then the error.
func TestDamagedAuxtrace(t *testing.T) {
	for _, body := range [][]byte{le(1<<63, 0), le(9), {1, 2}} {
		b := small()
		at := b.DataOffset() + b.Len()
		b.Record(71, 0, body)
		f := openBuilt(t, b)
		recs, err := readAll(f.AllRecords())
		var de *decode.Error
		if !errors.As(err, &de) || len(body) >= 8 && len(recs) != 3 {
			t.Errorf("%d bytes: %d records, %v", len(body), len(recs), err)
		}
		if de.Offset != at && len(body) >= 8 {
			t.Errorf("%d bytes: offset %#x, want %#x", len(body), de.Offset, at)
		}
	}
}

// TestCompressedRecords returns them undecoded.
func TestCompressedRecords(t *testing.T) {
	b := small()
	b.Record(81, 0, []byte("zstd"))
	b.Record(83, 0, []byte("zstd again"))
	recs := records(t, openBuilt(t, b))
	if len(recs) != 4 || !recs[2].Type.Compressed() || !recs[3].Type.Compressed() {
		t.Errorf("records %+v", recs)
	}
}
