// Package memory adds up what processors record of accesses: which level of the memory served them, and how long
// that took.
package memory

import (
	"fmt"
	"strings"

	"symbolize/ingest"
)

// Sums are the accesses of some samples.
type Sums struct {
	Levels map[string]uint64 `json:"levels,omitempty"`          // samples by ingest.MemoryTag
	Cycles uint64            `json:"latency,omitempty"`         // of the samples with a latency
	Timed  uint64            `json:"latency_samples,omitempty"` // their number

	served uint64 // samples in Levels
}

// Add adds a sample, if what it accessed was recorded.
func (s *Sums) Add(p *ingest.Profile, x *ingest.Sample) {
	for t := range p.AllTags(x) {
		switch t.Key {
		case ingest.MemoryTag:
			if t.Text == ingest.UnknownLevel {
				break
			}
			if s.Levels == nil {
				s.Levels = make(map[string]uint64)
			}
			s.Levels[t.Text] += x.Count
			s.served += x.Count
		case ingest.LatencyTag:
			if t.Numeric && t.Number > 0 {
				s.Cycles += uint64(t.Number) * x.Count
				s.Timed += x.Count
			}
		}
	}
}

// Empty reports whether nothing was recorded.
func (s *Sums) Empty() bool { return s == nil || s.served+s.Timed == 0 }

// columns are the levels with columns: the words that names of these levels have.
var columns = []struct {
	title string
	words []string
}{
	{"L1", []string{"L1", "L0"}},
	{"LFB", []string{"LFB"}},
	{"L2", []string{"L2"}},
	{"L3", []string{"L3", "L4", "Remote Cache", "Any cache"}},
	{"RAM", []string{"RAM", "PMEM", "CXL", "Memory-side"}},
}

// column returns the index in columns of a level; their number for misses and others.
func column(level string) int {
	if strings.HasSuffix(level, "miss") {
		return len(columns)
	}
	for i := range columns {
		for _, w := range columns[i].words {
			if strings.Contains(level, w) {
				return i
			}
		}
	}
	return len(columns)
}

// Titles returns the titles of the columns.
func Titles() (list []string) {
	for i := range columns {
		list = append(list, columns[i].title+"%")
	}
	return append(list, "other%", "cycles")
}

// Columns returns the shares of the levels, in percent of the samples that have one, and the mean latency; "" for
// what was not recorded.
func (s *Sums) Columns() []string {
	list := make([]string, len(columns)+2)
	if s.Empty() {
		return list
	}
	var counts [16]uint64
	for level, n := range s.Levels {
		counts[column(level)] += n
	}
	for i := range list[:len(columns)+1] {
		if s.served > 0 && counts[i] > 0 {
			list[i] = fmt.Sprintf("%.2f", 100*float64(counts[i])/float64(s.served))
		}
	}
	if s.Timed > 0 {
		list[len(columns)+1] = fmt.Sprintf("%.1f", float64(s.Cycles)/float64(s.Timed))
	}
	return list
}

// Line returns columns as text for a table.
func Line(list []string) string {
	var b strings.Builder
	for _, text := range list {
		fmt.Fprintf(&b, " %6s", text)
	}
	return b.String()
}
