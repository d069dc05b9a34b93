package files

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/ingest/decode"
	"testing"
)

func TestFile(t *testing.T) {
	raw := bytes.Repeat([]byte("symbolize "), 10_000)
	for _, how := range []Packing{XZ, Zstd, Gzip} {
		for range 2 { // decoders are used again
			b := elfbuild.Pack(string(how), raw)
			data, size, kind, err := Unpack("demo.ko", bytes.NewReader(b), int64(len(b)))
			if err != nil || kind != string(how) || size != int64(len(raw)) {
				t.Fatalf("%s: %d bytes, kind %q, %v", how, size, kind, err)
			}
			got := make([]byte, size)
			if _, err := data.ReadAt(got, 0); err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%s: %d bytes, %v", how, len(got), err)
			}
		}
	}
	r := bytes.NewReader(raw)
	data, size, kind, err := Unpack("demo.ko", r, int64(len(raw)))
	if data != io.ReaderAt(r) || size != int64(len(raw)) || kind != "" || err != nil {
		t.Errorf("a file that is not packed: %v, %d, %q, %v", data, size, kind, err)
	}
	if _, size, _, err := Unpack("empty", bytes.NewReader(nil), 0); size != 0 || err != nil {
		t.Errorf("an empty file: %d, %v", size, err)
	}
}

func TestFileBad(t *testing.T) {
	raw := bytes.Repeat([]byte("symbolize "), 1000)
	for _, how := range []Packing{XZ, Zstd, Gzip} {
		b := elfbuild.Pack(string(how), raw)
		for n := 6; n < len(b); n += max(1, len(b)/200) {
			_, _, _, err := Unpack("demo.ko", bytes.NewReader(b[:n]), int64(n))
			if de := (*decode.Error)(nil); !errors.As(err, &de) {
				t.Errorf("%s cut at %d of %d: %v", how, n, len(b), err)
			}
		}
		_, err := UnpackAll(how, bytes.NewReader(b), uint64(len(raw)-1))
		if !errors.Is(err, errTooLong) {
			t.Errorf("%s over its bound: %v", how, err)
		}
		if got, err := UnpackAll(how, bytes.NewReader(b), uint64(len(raw))); err != nil ||
			!bytes.Equal(got, raw) {
			t.Errorf("%s at its bound: %v", how, err)
		}
	}
	_, _, _, err := Unpack("gone", failing{}, 10)
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	_, _, _, err = Unpack("short", bytes.NewReader(nil), 10)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that shrank: %v", err)
	}
}

// TestBombs unpacks files that grow a thousandfold and more: they are refused before they are in
// memory. Content up to the floor is accepted in every packing.
func TestOpenUnpacked(t *testing.T) {
	raw := bytes.Repeat([]byte("symbolize "), 10_000)
	path := filepath.Join(t.TempDir(), "file")
	for _, how := range []Packing{"", XZ, Zstd, Gzip} {
		packed := raw
		if how != "" {
			packed = elfbuild.Pack(string(how), raw)
		}
		for _, n := range []int{len(packed), len(packed) / 2, MagicBytes, 0} {
			must.Write(t, path, packed[:n])
			var got []byte
			r, err := OpenUnpacked(path)
			if err == nil {
				got, err = io.ReadAll(r)
				err = errors.Join(err, r.Close())
			}
			whole := n == len(packed) || how == "" || n == 0
			if (err == nil) != whole || !bytes.HasPrefix(raw, got) || n == len(packed) && len(got) != len(raw) {
				t.Errorf("%q, %d of %d bytes: got %d, %v", how, n, len(packed), len(got), err)
			}
		}
	}
	must.Write(t, path, elfbuild.Pack("gzip", make([]byte, unpackFloor+1)))
	r, err := OpenUnpacked(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); n > unpackFloor || !errors.Is(err, errTooLong) {
		t.Errorf("a bomb: %d bytes, %v", n, err)
	}
}

func TestBombs(t *testing.T) {
	// head -c $((16*1024*1024+1)) /dev/zero | xz -9e
	xz := must.Read(t, "testdata/bomb.xz")
	if _, _, _, err := Unpack("demo.ko", bytes.NewReader(xz), int64(len(xz))); err == nil ||
		!strings.Contains(err.Error(), errTooLong.Error()) {
		t.Errorf("xz: %v", err)
	}
	if b, err := UnpackAll(XZ, bytes.NewReader(xz), unpackFloor+1); err != nil ||
		len(b) != unpackFloor+1 {
		t.Errorf("xz without the bound: %d bytes, %v", len(b), err)
	}
	for _, how := range []Packing{Zstd, Gzip} {
		for _, size := range []int{unpackFloor, unpackFloor + 1} {
			b := elfbuild.Pack(string(how), make([]byte, size))
			if len(b) > size/maxRatio {
				t.Fatalf("%s: %d bytes pack to %d, no bomb", how, size, len(b))
			}
			_, n, _, err := Unpack("demo.ko", bytes.NewReader(b), int64(len(b)))
			if size == unpackFloor && (err != nil || n != int64(size)) ||
				size > unpackFloor && (err == nil || !strings.Contains(err.Error(), errTooLong.Error())) {
				t.Errorf("%s: %d bytes in %d: %d, %v", how, size, len(b), n, err)
			}
		}
	}
	for _, c := range []struct{ packed, limit, want uint64 }{
		{packed: 0, limit: maxUnpacked, want: unpackFloor}, {packed: 0, limit: 100, want: 100}, {packed: 1 << 20,
			limit: maxUnpacked, want: 32 << 20},
		{packed: 1 << 30, limit: maxUnpacked, want: maxUnpacked}, {packed: 1 << 63,
			limit: maxUnpacked, want: maxUnpacked},
	} {
		if got := UnpackBound(c.packed, c.limit); got != c.want {
			t.Errorf("%d bytes may unpack to %d, want %d", c.packed, got, c.want)
		}
	}
}

// TestHead: only the beginning is unpacked.
func TestHead(t *testing.T) {
	const whole = 40 << 20
	data := make([]byte, whole)
	copy(data, "\x7fELF, and much behind it")
	gz, zst := elfbuild.Pack(string(Gzip), data), elfbuild.Pack(string(Zstd), data)
	for _, tt := range []struct {
		name string
		file []byte
		want []byte
	}{
		{name: "not packed", file: data}, {name: "empty"},
		{name: "gzip", file: gz, want: data[:peekBytes]}, {name: "zstd", file: zst,
			want: data[:peekBytes]},
		{name: "short", file: elfbuild.Pack(string(XZ), []byte("ab")), want: []byte("ab")},
		{name: "magic alone", file: zst[:4]}, {name: "cut in the header", file: gz[:8]},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := UnpackHead(bytes.NewReader(tt.file), int64(len(tt.file)))
		runtime.ReadMemStats(&after)
		if !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > whole/4 {
			t.Errorf("%s: %d bytes allocated for %d", tt.name, n, peekBytes)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	raw := bytes.Repeat([]byte("symbolize"), 100)
	for _, how := range []Packing{XZ, Zstd, Gzip} {
		f.Add(elfbuild.Pack(string(how), raw))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		data, size, kind, err := Unpack("demo.ko", bytes.NewReader(b), int64(len(b)))
		if (data == nil) != (err != nil) || kind == "" && err == nil && size != int64(len(b)) {
			t.Errorf("data %v of %d bytes, kind %q, error %v", data, size, kind, err)
		}
	})
}

// failing is a file on a broken disk.
type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }
