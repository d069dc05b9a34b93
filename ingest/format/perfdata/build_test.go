package perfdata

import (
	"bytes"
	"testing"

	"symbolize/fixtures/perfbuild"
)

// openBytes opens a file held in memory.
func openBytes(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := Open("test.data", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// openBuilt opens a built file, which must be without damage.
func openBuilt(t testing.TB, b *perfbuild.File) *File {
	t.Helper()
	f := openBytes(t, b.Bytes())
	if len(f.Warnings) > 0 {
		t.Fatalf("warnings: %v", f.Warnings)
	}
	return f
}

// records returns copies of all records, which must come to a clean end.
func records(t testing.TB, f *File) []Record {
	t.Helper()
	recs, err := readAll(f.AllRecords())
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

func readAll(r *RecordReader) ([]Record, error) {
	var all []Record
	for r.Next() {
		rec := *r.Record()
		rec.Body = bytes.Clone(rec.Body)
		all = append(all, rec)
	}
	return all, r.Err()
}

// bothOrders runs a test on a little-endian and a big-endian file.
func bothOrders(t *testing.T, run func(t *testing.T, b *perfbuild.File)) {
	for _, big := range []bool{false, true} {
		name := "little"
		if big {
			name = "big"
		}
		t.Run(name, func(t *testing.T) { run(t, perfbuild.NewOrder(big)) })
	}
}
