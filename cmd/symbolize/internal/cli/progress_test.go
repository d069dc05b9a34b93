package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/vbauerster/mpb/v8"

	"symbolize/store/indexer"
)

// TestProgress draws a bar on an output that is declared a terminal, and removes it.
func TestIndexBar(t *testing.T) {
	var stderr bytes.Buffer
	pr := NewBar(&stderr, "index", "objects", nil)
	pr.Update()(indexer.Progress{Objects: 3})
	if pr.p != nil {
		t.Error("a bar before progressDelay")
	}
	pr.Stop()

	pr = NewBar(&stderr, "index", "objects", nil)
	pr.start = time.Now().Add(-2 * progressDelay)
	pr.options = append(pr.options, mpb.WithAutoRefresh()) // the buffer is no terminal
	pr.Update()(indexer.Progress{Objects: 3, Done: 1, Size: 3 << 20, Bytes: 1 << 20})
	pr.Update()(indexer.Progress{Objects: 4, Done: 4, Size: 4 << 20, Bytes: 3 << 20})
	pr.Stop()
	for _, want := range []string{"index", "3.0MiB / 4.0MiB, 4/4 objects"} {
		if got := stderr.String(); !strings.Contains(got, want) {
			t.Errorf("drew %q, want %q in it", got, want)
		}
	}
	var none *Bar
	none.Stop()
	if none.Update() != nil {
		t.Error("a callback without a bar")
	}
}

// TestIndexLines: off a terminal there is a line every 30 s.
func TestIndexLines(t *testing.T) {
	var lines []string
	p := NewBar(nil, "index", "objects", func(text string) { lines = append(lines, text) })
	now := time.Now()
	p.log.now = func() time.Time { return now }
	update := p.Update()
	now = now.Add(time.Minute) // until it had the store's lock
	for i := range uint64(70) {
		now = now.Add(time.Second)
		update(indexer.Progress{Bytes: i << 20, Size: 100 << 20, Done: i, Objects: 100})
	}
	p.Stop()
	if len(lines) != 2 || lines[1] != "index: 60 of 100 MiB, 60 of 100 objects" {
		t.Errorf("lines %q", lines)
	}
}

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
