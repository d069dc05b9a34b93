package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vbauerster/mpb/v8"

	"symbolize/store/indexer"
)

// TestIndexBar draws a bar on an output that is declared a terminal, after progressDelay, and
// removes it.
func TestIndexBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		pr := NewBar(&stderr, "index", "objects", nil)
		pr.options = append(pr.options, mpb.WithAutoRefresh()) // the buffer is not a terminal
		update := pr.Update()
		time.Sleep(progressDelay - time.Millisecond)
		update(indexer.Progress{Objects: 3})
		if pr.p != nil {
			t.Error("a bar before progressDelay")
		}
		time.Sleep(time.Millisecond)
		update(indexer.Progress{Objects: 3, Done: 1, Size: 3 << 20, Bytes: 1 << 20})
		time.Sleep(time.Second) // the bar is drawn meanwhile
		update(indexer.Progress{Objects: 4, Done: 3, Size: 4 << 20, Bytes: 3 << 20})
		pr.Stop()
		var drawn []string
		for line := range strings.Lines(stderr.String()) {
			line = line[strings.LastIndexAny(line, "\r\x1b")+1:]
			if at := strings.Index(line, "index "); at >= 0 {
				drawn = append(drawn, strings.TrimSpace(line[at:]))
			}
		}
		want := []string{"index  [==========>----------------------]  1.0MiB / 3.0MiB, 1/3 objects",
			"index  [========================>--------]  3.0MiB / 4.0MiB, 3/4 objects"}
		const cleared = "\x1b[1A\x1b[J"
		if drawn = slices.Compact(drawn); !slices.Equal(drawn, want) || !strings.HasSuffix(stderr.String(), cleared) {
			t.Errorf("drew %q, want %q; all: %q", drawn, want, stderr.String())
		}
	})
}

func TestNoBar(t *testing.T) {
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
