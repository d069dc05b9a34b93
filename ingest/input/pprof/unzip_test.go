package pprof

import (
	"bytes"
	"compress/gzip"
	"testing"
)

// TestUnzip: the size in a gzipped file is a hint only.
func TestUnzip(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	want := bytes.Repeat([]byte("pprof "), 5000)
	w.Write(want)
	w.Close()
	for _, size := range []string{"", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x01\x00\x00\x00"} {
		data := bytes.Clone(packed.Bytes())
		copy(data[len(data)-4:], size)
		got, err := unzip("x", data, 1<<20)
		if (err == nil) != (size == "") || err == nil && !bytes.Equal(got, want) {
			t.Errorf("trailer %q: %d bytes, %v", size, len(got), err)
		}
		if n := unzippedSize(data, 1<<20); n > 1<<20+bytes.MinRead || n > int64(len(data))*maxDeflate {
			t.Errorf("trailer %q: room for %d bytes", size, n)
		}
	}
	for n := range 12 { // cut off: an error, never a panic
		if _, err := unzip("x", packed.Bytes()[:n], 1<<20); (err == nil) != (n < 2) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
