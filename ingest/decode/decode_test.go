package decode

import (
	"encoding/binary"
	"errors"
	"testing"
)

func TestIntegersInBothOrders(t *testing.T) {
	var b []byte
	for _, big := range []bool{false, true} {
		if big {
			b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(
				binary.BigEndian.AppendUint16([]byte{7}, 0x0102), 0x03040506), 0x0708090a0b0c0d0e)
		} else {
			b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(
				binary.LittleEndian.AppendUint16([]byte{7}, 0x0102), 0x03040506), 0x0708090a0b0c0d0e)
		}
		r := New("x", b, 0, big)
		if r.BigEndian() != big {
			t.Errorf("BigEndian() = %v", r.BigEndian())
		}
		if v := r.U8(); v != 7 {
			t.Errorf("U8 = %d", v)
		}
		if v := r.U16(); v != 0x0102 {
			t.Errorf("U16 = %#x", v)
		}
		if v := r.U32(); v != 0x03040506 {
			t.Errorf("U32 = %#x", v)
		}
		if v := r.U64(); v != 0x0708090a0b0c0d0e {
			t.Errorf("U64 = %#x", v)
		}
		if r.Left() != 0 || r.Err() != nil {
			t.Errorf("left %d, error %v", r.Left(), r.Err())
		}
	}
}

func TestNumbersAndStrings(t *testing.T) {
	b := binary.AppendVarint(binary.AppendUvarint(nil, 300), -5)
	b = append(b, "name\x00fixed\x00\x00\x00rest"...)
	r := New("x", b, 0, false)
	if v := r.Uvarint(); v != 300 {
		t.Errorf("Uvarint = %d", v)
	}
	if v := r.Varint(); v != -5 {
		t.Errorf("Varint = %d", v)
	}
	if s := r.CString(); s != "name" {
		t.Errorf("CString = %q", s)
	}
	if s := r.FixedString(8); s != "fixed" {
		t.Errorf("FixedString = %q", s)
	}
	if s := string(r.Bytes(4)); s != "rest" || r.Err() != nil {
		t.Errorf("Bytes = %q, error %v", s, r.Err())
	}
}

// TestStickyError checks the contract for all decoders: the first failure is kept with its
// position, and all later reads return zero.
func TestStickyError(t *testing.T) {
	reads := map[string]func(*Reader){
		"U8": func(r *Reader) { r.Skip(3); r.U8() }, "U16": func(r *Reader) { r.Skip(2); r.U16() },
		"U32": func(r *Reader) { r.U32() }, "U64": func(r *Reader) { r.U64() },
		"Bytes":       func(r *Reader) { r.Bytes(1 << 63) },
		"CString":     func(r *Reader) { r.CString() },
		"FixedString": func(r *Reader) { r.FixedString(9) },
		"Uvarint":     func(r *Reader) { r.Uvarint() }, "Varint": func(r *Reader) { r.Varint() },
		"Seek": func(r *Reader) { r.Seek(4) },
	}
	for name, read := range reads {
		r := New("file", []byte{0x80, 0x80, 0x80}, 100, false)
		read(r)
		var e *Error
		if !errors.As(r.Err(), &e) || e.Name != "file" || e.Offset < 100 || e.Offset > 103 {
			t.Errorf("%s: error %v", name, r.Err())
			continue
		}
		first := r.Err()
		if r.U8() != 0 || r.U64() != 0 || r.CString() != "" || r.Left() != 0 || r.Err() != first {
			t.Errorf("%s: reads on after the error, or another one: %v", name, r.Err())
		}
		r.Seek(0)
		if r.Left() != 0 {
			t.Errorf("%s: Seek brings a failed reader back", name)
		}
	}
}

func TestErrorText(t *testing.T) {
	r := New("perf.data", make([]byte, 4), 0x1c4, false)
	r.Skip(4)
	r.Fail("build-ID size %d > %d", 24, 20)
	const want = "perf.data: offset 0x1c8: build-ID size 24 > 20"
	if got := r.Err().Error(); got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

// FuzzReader runs reads chosen by one input over another: no panic, no position past the end, no
// success after a failure.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []byte("abc\x00def"))
	f.Fuzz(func(t *testing.T, ops, data []byte) {
		r := New("x", data, 0, len(ops)%2 == 1)
		for _, op := range ops {
			failed, left := r.Err() != nil, r.Left()
			switch op % 10 {
			case 0:
				r.U8()
			case 1:
				r.U16()
			case 2:
				r.U32()
			case 3:
				r.U64()
			case 4:
				r.Bytes(uint64(op))
			case 5:
				r.CString()
			case 6:
				r.FixedString(uint64(op) << 56)
			case 7:
				r.Uvarint()
			case 8:
				r.Varint()
			case 9:
				r.Skip(uint64(op / 10))
			}
			if r.Left() < 0 || r.Left() > left || failed && r.Err() == nil {
				t.Fatalf("op %d: %d left after %d, error %v", op, r.Left(), left, r.Err())
			}
		}
	})
}
