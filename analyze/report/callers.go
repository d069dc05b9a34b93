package report

import (
	"fmt"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest"
)

// Callers counts what is known of the callers in stacks of frame pointers that were checked and
// completed (analyze/callers). Its JSON names are an interface.
type Callers struct {
	Samples  uint64 `json:"samples"`
	Proven   uint64 `json:"proven"`   // pairs of a function and its caller
	Restored uint64 `json:"restored"` // callers that were not recorded
	Recorded uint64 `json:"recorded"` // pairs that are neither proven nor refuted
	Gaps     uint64 `json:"gaps"`     // places where callers are missing

	SamplesRestored uint64 `json:"samples_restored"` // with a restored caller
	SamplesGaps     uint64 `json:"samples_gaps"`
	SamplesCut      uint64 `json:"samples_cut"` // of which the rest was no callers
}

// NewCallers returns nil for a profile with stacks as they were recorded.
func NewCallers(s *ingest.CallerStats) *Callers {
	if s.Samples == 0 {
		return nil
	}
	return &Callers{Samples: s.Samples, Proven: s.Proven, Restored: s.Restored, Recorded: s.Recorded,
		Gaps: s.Gaps, SamplesRestored: s.SamplesRestored, SamplesGaps: s.SamplesGaps, SamplesCut: s.SamplesCut}
}

// String returns the counts in a line: "1,205 proven, 405 restored; 6.00% of the samples …".
func (c *Callers) String() string {
	text := fmt.Sprintf("%s proven, %s restored, %s as recorded", table.Thousands(c.Proven),
		table.Thousands(c.Restored), table.Thousands(c.Recorded))
	var words []string
	for _, x := range []struct {
		n    uint64
		what string
	}{{c.SamplesRestored, "restored callers"}, {c.SamplesGaps, "missing callers"},
		{c.SamplesCut, "callers that are unknown"}} {
		if x.n > 0 {
			words = append(words, share100(percent(float64(x.n), float64(c.Samples)))+" with "+x.what)
		}
	}
	if len(words) > 0 {
		text += "; of the samples " + strings.Join(words, ", ")
	}
	return text
}
