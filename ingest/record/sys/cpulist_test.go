package sys

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string][]int{"0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "2,5-6": {2, 5, 6},
		"0-2,5\n": {0, 1, 2, 5}} {
		if got, err := ParseCPUs(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("Parse(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "a", "x", "1-", "3-1", "-1", "0-", "0-99999999999", "0-65536"} {
		if got, err := ParseCPUs(text); err == nil || got != nil {
			t.Errorf("Parse(%q) = %v", text, got)
		}
	}
}
