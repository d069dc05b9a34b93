package advice

import (
	"fmt"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest"
)

// Copied is how far the copied user stacks of a profile were unwound. Its JSON names are an
// interface.
type Copied struct {
	Samples   uint64 `json:"samples"`
	Bytes     uint64 `json:"bytes_asked"`
	Full      uint64 `json:"full"` // copies of the requested length
	Unwound   bool   `json:"unwound"`
	Complete  uint64 `json:"complete"` // unwound to the outermost function
	Truncated uint64 `json:"truncated"`
	Other     uint64 `json:"other_stack"`
	NoTable   uint64 `json:"no_unwind_table"`
	Broken    uint64 `json:"chain_broken"`
	NotCopied uint64 `json:"not_copied"`
	Guessed   uint64 `json:"guessed"` // of all above: with callers that may be wrong or missing
}

// NewCopied returns nil for a profile without copied stacks.
func NewCopied(s *ingest.CopiedStats) *Copied {
	if s.Samples == 0 {
		return nil
	}
	return &Copied{Samples: s.Samples, Bytes: s.Bytes, Full: s.Full, Unwound: s.Unwound(),
		Complete: s.Complete, Truncated: s.Truncated, Other: s.OtherStack, NoTable: s.NoTable,
		Broken: s.Broken, NotCopied: s.NotCopied, Guessed: s.Guessed}
}

// String returns the counts in a line: "23,127 copied, 98.30% unwound to the end; …".
func (c *Copied) String() string {
	text := fmt.Sprintf("%s copied, %s bytes each", table.Thousands(c.Samples), table.Thousands(c.Bytes))
	all := float64(c.Samples)
	if !c.Unwound {
		return fmt.Sprintf("%s; %s as long as that, and may be truncated", text,
			share100(percent(float64(c.Full), all)))
	}
	text += fmt.Sprintf("; %s unwound to the end", share100(percent(float64(c.Complete), all)))
	var words []string
	for _, e := range []struct {
		n    uint64
		word string
	}{{c.Truncated, "truncated"}, {c.Other, "on another stack"}, {c.NoTable, "without unwind table"},
		{c.Broken, "broken"}, {c.NotCopied, "not copied"}} {
		if e.n > 0 {
			words = append(words, share100(percent(float64(e.n), all))+" "+e.word)
		}
	}
	if len(words) > 0 {
		text += "; " + strings.Join(words, ", ")
	}
	if c.Guessed > 0 {
		text += fmt.Sprintf("; %s with uncertain callers", share100(percent(float64(c.Guessed), all)))
	}
	return text
}
