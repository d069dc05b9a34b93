package main

import (
	"strings"
	"testing"
	"time"
)

// TestBatchProgressLines: off a terminal there is a line every 30 s, not one a capture.
func TestBatchProgressLines(t *testing.T) {
	env, _, stderr := inProcess()
	p := (&app{env: env}).newBatchProgress()
	now := p.written
	p.now = func() time.Time { return now }
	p.step("collect", 100)
	for range 100 {
		now = now.Add(time.Second)
		p.one()
	}
	p.stop()
	want := []string{"collect: 30 of 100", "collect: 60 of 100", "collect: 90 of 100"}
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("lines %q", lines)
	}
	for i := range want {
		if !strings.HasSuffix(lines[i], want[i]) {
			t.Errorf("line %q, want %q", lines[i], want[i])
		}
	}
}
