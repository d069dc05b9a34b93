package protobuf

import "testing"

// TestZeroNumber: no field has the number 0, but lost pages of a file are zeros.
func TestZeroNumber(t *testing.T) {
	for _, c := range []struct {
		message []byte
		fields  int
		bad     bool
	}{
		{nil, 0, false},
		{[]byte{1 << 3, 7}, 1, false},
		{[]byte{1 << 3, 7, 0, 0, 0, 0}, 1, true},
		{make([]byte, 100), 0, true},
		{[]byte{0x82, 0x00, 1, 'x'}, 0, true}, // the number 0, in two bytes
	} {
		n := 0
		k := Fields(c.message)
		for k.Next() {
			n++
		}
		if n != c.fields || (k.Err != nil) != c.bad {
			t.Errorf("% x: %d fields, %v", c.message, n, k.Err)
		}
	}
}
