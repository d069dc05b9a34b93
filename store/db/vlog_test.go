package db

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
)

// logEntry is one entry of a value log.
type logEntry struct {
	start int64 // of the entry in the file
	value int64 // where the value begins
	size  int64 // of the value
}

// logEntries returns the entries of a value log. Each is
//
//	meta u8 | user meta u8 | key length LEB128 | value length LEB128 | expiry LEB128
//
// and key, value and the CRC-32C of all that (big-endian).
func logEntries(tb testing.TB, path string) (list []logEntry) {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	for at := vlogHeader; at < len(b); {
		e := logEntry{start: int64(at)}
		at += 2
		var field [3]uint64
		for i := range field {
			v, n := binary.Uvarint(b[at:])
			field[i], at = v, at+n
		}
		e.value, e.size = int64(at)+int64(field[0]), int64(field[1])
		at = int(e.value+e.size) + crc32.Size
		list = append(list, e)
	}
	return list
}

// spoilLength gives an entry of a value log another length for its value: with the
// checksum that was there, or with one that is right for it.
func spoilLength(tb testing.TB, path string, e *logEntry, to func(length byte) byte, repair bool) {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	end := e.value + e.size
	_, n := binary.Uvarint(b[e.start+2:])
	at := e.start + 2 + int64(n) + 1 // the length's second byte, so its upper bits
	b[at] = to(b[at])
	if repair {
		sum := crc32.Checksum(b[e.start:end], castagnoli)
		binary.BigEndian.PutUint32(b[end:], sum)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = f.WriteAt(b, 0)
	if err := errors.Join(err, f.Close()); err != nil {
		tb.Fatal(err)
	}
}

// TestSpoiltLength changes the length of a value in the log, also so that the entry's
// checksum fits it, which makes Badger keep a lock for ever. Reading, closing, collecting
// and indexing end all the same, and the damage is found and dropped.
func TestSpoiltLength(t *testing.T) {
	cases := []struct {
		name   string
		to     func(byte) byte
		repair bool
	}{
		{name: "bit flipped", to: func(b byte) byte { return b ^ 0x40 }},
		{name: "longer", to: func(b byte) byte { return b&0x80 | 0x7f }, repair: true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			path := t.TempDir()
			w := openTestWriter(t, path)
			for n := range 8 {
				mustMerge(t, w, testContribution(t, n, 200+n))
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			want := digestOf(t, path)
			log := filepath.Join(genDir(path, 1), "000001.vlog")
			list := logEntries(t, log)
			if len(list) < 8 {
				t.Fatalf("%d values in the log", len(list))
			}
			spoilLength(t, log, &list[3], tc.to, tc.repair)

			r := openTestReader(t, path)
			v, err := r.Verify(t.Context())
			if err != nil || v.Sound() {
				t.Errorf("damage is not seen: %v, %v", v, err)
			}
			if err := r.Close(); err != nil {
				t.Errorf("reader: %v", err)
			}
			w = openTestWriter(t, path)
			res, err := w.GC(t.Context(), GCOptions{})
			if err != nil || res.Damaged != 1 {
				t.Fatalf("gc: %+v, %v", res, err)
			}
			for n := range 8 {
				mustMerge(t, w, testContribution(t, n, 200+n))
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			mustVerify(t, path)
			if got := digestOf(t, path); got != want {
				t.Errorf("digest %x, was %x", got, want)
			}
		})
	}
}
