package lookup

import "testing"

func TestParseHex(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "ffffffffffffffff": 1<<64 - 1, "aBc": 0xabc,
		"0000000000000000000001": 1} {
		if got, ok := parseHex([]byte(text)); !ok || got != want {
			t.Errorf("%s: %#x, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "0x1", "10000000000000000", "g", "-1", "1 "} {
		if got, ok := parseHex([]byte(text)); ok {
			t.Errorf("%q is %#x", text, got)
		}
	}
}
