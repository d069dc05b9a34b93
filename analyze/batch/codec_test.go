package batch

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
)

// every has a field of each form.
type every struct {
	Flag     bool
	Count    uint16
	Signed   int64
	Text     string
	List     []uint32
	Pair     [2]int8
	Names    map[string][]string
	Absent   *inner
	Inner    *inner
	IDs      []buildid.ID
	Unsigned uint64
}

type inner struct{ Text string }

func newEvery() *every {
	return &every{Flag: true, Count: 65535, Signed: -1 << 63, Text: "a\x00\xff", List: []uint32{1, 1 << 31},
		Pair: [2]int8{-128, 127}, Names: map[string][]string{"b": nil, "a": {"x", ""}},
		Inner: &inner{Text: "inner"}, Unsigned: 1<<64 - 1,
		IDs: []buildid.ID{buildid.New([]byte{1, 2, 3}), buildid.Padded([]byte{7, 8}),
			buildid.Make(buildid.JIT, []byte{9}), {}}}
}

// TestForms: a value is read as it was written, and equal values are equal bytes.
func TestForms(t *testing.T) {
	want := newEvery()
	raw := encodeRecord(want)
	got := new(every)
	if err := decodeRecord("test", raw, got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if !bytes.Equal(raw, encodeRecord(got)) {
		t.Error("equal values are other bytes")
	}
	for n := range raw {
		if err := decodeRecord("cut", raw[:n], new(every)); !errors.Is(err, ErrFormat) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

// TestOtherShape: a record of another type is refused, not misread.
func TestOtherShape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	w, err := createRecords(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Put("x", pack(&[]uint32{1})), w.Publish()); err != nil {
		t.Fatal(err)
	}
	f, err := openRecords(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get("x", new([]uint64)); !errors.Is(err, ErrFormat) {
		t.Errorf("a record of []uint32 as []uint64: %v", err)
	}
	if found, err := f.Get("y", new([]uint64)); found || err != nil {
		t.Errorf("a record that is not there: %t, %v", found, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzDecodeRecord: any bytes are a value or an error, and what is read can be written.
func FuzzDecodeRecord(f *testing.F) {
	f.Add(encodeRecord(newEvery()))
	f.Add(encodeRecord(new(every)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := new(every)
		if decodeRecord("fuzz", raw, got) != nil {
			return
		}
		again := new(every)
		if err := decodeRecord("again", encodeRecord(got), again); err != nil {
			t.Errorf("%+v is written as bytes that are refused: %v", got, err)
		}
	})
}

// damaged calls try with a file cut at every length, and with each byte changed.
func damaged(t *testing.T, whole []byte, try func(path string) error) {
	path := filepath.Join(t.TempDir(), "file")
	write := func(b []byte) {
		t.Helper()
		must.Write(t, path, b)
	}
	for n := range whole {
		write(whole[:n])
		if err := try(path); !errors.Is(err, ErrFormat) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	for n := range whole {
		b := append([]byte(nil), whole...)
		b[n] ^= 0x55
		write(b)
		if err := try(path); !errors.Is(err, ErrFormat) {
			t.Fatalf("byte %d changed: %v", n, err)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	w, err := createRecords(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Put("x", pack(newEvery())), w.Publish()); err != nil {
		t.Fatal(err)
	}
	whole := must.Read(t, path)
	damaged(t, whole, func(path string) error {
		f, err := openRecords(path)
		if err != nil {
			return err
		}
		_, err = f.Get("x", new(every))
		return errors.Join(err, f.Close())
	})
}
