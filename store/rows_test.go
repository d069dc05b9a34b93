package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"symbolize/buildid"
)

// testRows returns n rows as a library directory has them.
func testRows(n int) DirRows {
	rnd := rand.New(rand.NewPCG(uint64(n), 7))
	var rows DirRows
	for i := range n {
		r := PathRow{
			Name: fmt.Sprintf("libsomething%04d.so.%d", i, i%7), Dev: 0xfe00, Inode: uint64(1000 + 3*i),
			Size: uint64(rnd.IntN(1 << 20)), MtimeNs: 1_700_000_000_000_000_000 + int64(i)*1e9,
			CtimeNs: 1_710_000_000_000_000_000 + rnd.Int64N(1e9), Producer: 3,
		}
		if i%3 == 0 {
			r.ID = testID(i)
			r.Looked = []string{"/usr/lib/debug/.build-id/aa/" + r.Name}
		}
		if i%10 == 9 {
			r.Error = "section 3: offset 0x40: 8 bytes wanted, 2 left"
		}
		rows = append(rows, r)
	}
	return rows.Sort()
}

func TestRowsRoundTrip(t *testing.T) {
	odd := DirRows{
		{Name: ""},
		{Name: "a", Dev: math.MaxUint64, Inode: math.MaxUint64, Gen: 5, Size: math.MaxUint64,
			MtimeNs: math.MinInt64, CtimeNs: math.MaxInt64, Producer: math.MaxUint32},
		{Name: "b", MtimeNs: -1, CtimeNs: -1_500_000_000,
			ID: buildid.Make(buildid.Content, bytes.Repeat([]byte{7}, 64))},
		{Name: "b\x00\n", Looked: []string{"", "x"}, Error: "e"},
	}
	for name, rows := range map[string]DirRows{
		"none": {}, "one": testRows(1), "many": testRows(2000), "odd": odd,
	} {
		b, err := EncodeRows(rows)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRows("test", b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, rows) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", name, got, rows)
		}
		if name == "many" && len(b) > 2000*25 {
			t.Errorf("2,000 rows take %d bytes", len(b))
		}
	}
}

func TestRowsTruncated(t *testing.T) {
	for _, n := range []int{3, 50} {
		b, err := EncodeRows(testRows(n))
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			if rows, err := DecodeRows("test", b[:i:i]); err == nil {
				t.Fatalf("%d of %d bytes: no error, %d rows", i, len(b), len(rows))
			}
		}
	}
}

func TestRowsRefused(t *testing.T) {
	plain := func(raw ...byte) []byte { return append([]byte{rowsVersion, 0, byte(len(raw))}, raw...) }
	huge := Compress([]byte{rowsVersion, 1, 0xff, 0xff, 0xff, 0x0f}, make([]byte, 100))
	for name, b := range map[string][]byte{
		"empty": nil, "newer": {2, 0, 0}, "compression": {rowsVersion, 7, 1, 0},
		"count": plain(200), "flags": plain(1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"rest": plain(0, 0), "size": {rowsVersion, 0, 9, 0}, "frame size": huge,
		"shared name": plain(1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
		"order":       plain(append([]byte{2}, make([]byte, 27)...)...),
	} {
		if rows, err := DecodeRows("test", b); err == nil {
			t.Errorf("%s: no error, %d rows", name, len(rows))
		}
	}
	// Each name is the one before and a byte more: 20,000 rows would be 200 MB.
	bomb := binary.AppendUvarint(nil, 20000)
	for i := range 20000 {
		bomb = binary.AppendUvarint(append(bomb, 0), uint64(i))
		bomb = append(bomb, 1, 'a', 0, 0, 0, 0, 0, 0)
	}
	head := binary.AppendUvarint([]byte{rowsVersion, 0}, uint64(len(bomb)))
	if rows, err := DecodeRows("test", append(head, bomb...)); err == nil {
		t.Errorf("bomb: no error, %d rows", len(rows))
	}
	long := DirRows{{Name: strings.Repeat("x", MaxPath+1)}}
	if err := CheckDir("/d", long); !errors.Is(err, ErrTooLarge) {
		t.Errorf("long name: %v", err)
	}
	if err := CheckDir("", nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("no directory: %v", err)
	}
}

func FuzzRows(f *testing.F) {
	for _, n := range []int{0, 1, 3, 40} {
		b, err := EncodeRows(testRows(n))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, err := DecodeRows("fuzz", b)
		if err != nil {
			return
		}
		again, err := EncodeRows(rows)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeRows("again", again)
		if err != nil || len(back) != len(rows) {
			t.Fatalf("%d rows, then %d, %v", len(rows), len(back), err)
		}
	})
}

func TestRowsFind(t *testing.T) {
	rows := append(testRows(30), PathRow{Name: "zz", Size: 1}, PathRow{Name: "zz", Size: 2}).Sort()
	if len(rows) != 31 || rows.Find("zz").Size != 1 || rows.Find("zzz") != nil {
		t.Errorf("%d rows, zz %+v", len(rows), rows.Find("zz"))
	}
}

func BenchmarkDecodeRows(b *testing.B) {
	data, err := EncodeRows(testRows(1000))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := DecodeRows("bench", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeRows(b *testing.B) {
	rows := testRows(1000)
	data, _ := EncodeRows(rows)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := EncodeRows(rows); err != nil {
			b.Fatal(err)
		}
	}
}
