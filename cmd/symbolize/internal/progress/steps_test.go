package progress

import (
	"testing"
	"time"
)

// TestStepLines: off a terminal there is a line every 30 s, not one a capture.
func TestStepLines(t *testing.T) {
	var lines []string
	p := NewSteps(nil, func(text string) { lines = append(lines, text) })
	now := time.Now()
	p.log.now = func() time.Time { return now }
	p.Step("collect", 100)
	for range 100 {
		now = now.Add(time.Second)
		p.One()
	}
	p.Stop()
	want := []string{"collect: 31 of 100", "collect: 61 of 100", "collect: 91 of 100"}
	if len(lines) != len(want) {
		t.Fatalf("lines %q", lines)
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("line %q, want %q", lines[i], want[i])
		}
	}
}
