package advice

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Callers counts what is known of the callers in stacks of frame pointers that were checked and
// completed (analyze/callers). Its JSON names are an interface.
type Callers struct {
	Samples  uint64 `json:"samples"`
	Proven   uint64 `json:"proven"`   // pairs of a function and its caller
	Restored uint64 `json:"restored"` // callers that were not recorded
	Recorded uint64 `json:"recorded"` // pairs that are neither proven nor refuted
	Gaps     uint64 `json:"gaps"`     // places where callers are missing
	Cut      uint64 `json:"cut"`      // pairs without a caller: the stack ends

	// Samples with such pairs; SamplesProven have no others than proven and restored ones.

	SamplesProven   uint64 `json:"samples_proven"`
	SamplesRecorded uint64 `json:"samples_recorded"`
	SamplesRestored uint64 `json:"samples_restored"`
	SamplesGaps     uint64 `json:"samples_gaps"`
	SamplesCut      uint64 `json:"samples_cut"`

	Unproven []Unproven `json:"unproven,omitempty"` // most pairs first
}

// Unproven counts the functions of an object whose callers are not proven, for one reason.
type Unproven struct {
	Object  string  `json:"object"`
	BuildID string  `json:"build_id,omitempty"`
	Reason  string  `json:"reason"`
	Pairs   uint64  `json:"pairs"` // of a function and its caller
	Share   float64 `json:"pairs_percent"`
	Hint    string  `json:"hint,omitempty"`
}

// NewCallers returns nil for a profile with stacks as they were recorded.
func NewCallers(s *ingest.CallerStats) *Callers {
	all := s.Proven + s.Restored + s.Recorded + s.Cut
	if all+s.Gaps == 0 {
		return nil // or without callers of processes
	}
	c := &Callers{Samples: s.Samples, Proven: s.Proven, Restored: s.Restored, Recorded: s.Recorded,
		Gaps: s.Gaps, Cut: s.Cut, SamplesRestored: s.SamplesRestored, SamplesGaps: s.SamplesGaps, SamplesCut: s.SamplesCut,
		SamplesProven: s.SamplesProven, SamplesRecorded: s.SamplesRecorded}
	for i := range s.Unproven {
		u := &s.Unproven[i]
		c.Unproven = append(c.Unproven, Unproven{Object: texts.Printable(u.Path), BuildID: u.ID.String(),
			Reason: unprovenReason(u), Pairs: u.Pairs, Share: percent(float64(u.Pairs), float64(all)),
			Hint: unprovenHint(u)})
	}
	slices.SortStableFunc(c.Unproven, func(a, b Unproven) int { return cmp.Compare(b.Pairs, a.Pairs) })
	return c
}

// unprovenReason is the reason of a count; code of other kinds than files has no tables.
func unprovenReason(u *ingest.UnprovenCallers) string {
	if u.Reason == ingest.CallsUnknown && u.Kind != ingest.ELF {
		return "not a file"
	}
	if u.Reason == ingest.CallsUnknown && u.ID.IsZero() {
		return ingest.NoBuildID.String()
	}
	return u.Reason.String()
}

// unprovenHint is the step that would prove more callers, or record them; "" for none.
func unprovenHint(u *ingest.UnprovenCallers) string {
	switch {
	case u.Reason == ingest.CallsUnknown && u.Kind == ingest.ELF && !u.ID.IsZero() && strings.HasPrefix(u.Path, "/"):
		return "symbolize index --calls " + texts.ShellWord(u.Path)
	case u.Reason == ingest.RegisterUsed, u.Reason == ingest.CalledNothing, u.Reason == ingest.CallerSkipped:
		return uncalledHint
	}
	return ""
}

// writeUnproven writes the rows of functions without proven callers, limit at most.
func (c *Callers) writeUnproven(out *bufio.Writer, limit int) {
	const row = "  %8s  %-21s  %s%s\n"
	if len(c.Unproven) == 0 {
		return
	}
	fmt.Fprintf(out, row, "callers%", "not proven", "object, build ID", "")
	last := ""
	for i := range c.Unproven {
		if i == limit {
			fmt.Fprintf(out, "  and %d more\n", len(c.Unproven)-limit)
			break
		}
		u := &c.Unproven[i]
		id := ""
		if u.BuildID != "" {
			id = "  " + u.BuildID
		}
		fmt.Fprintf(out, row, share100(u.Share), u.Reason, u.Object, id)
		if u.Hint != "" && u.Hint != last {
			fmt.Fprintf(out, "%*s%s\n", 12, "", u.Hint)
		}
		last = u.Hint
	}
}

// String returns the counts in a line: "1,205 proven, 405 restored; 6.00% of the samples …".
func (c *Callers) String() string {
	text := fmt.Sprintf("%s proven, %s restored, %s as recorded", table.Thousands(c.Proven),
		table.Thousands(c.Restored), table.Thousands(c.Recorded))
	var words []string
	for _, x := range []struct {
		n    uint64
		what string
	}{{c.SamplesProven, "all callers proven"}, {c.SamplesRestored, "restored callers"},
		{c.SamplesGaps, "missing callers"}, {c.SamplesRecorded, "callers as recorded"},
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
