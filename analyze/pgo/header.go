package pgo

import (
	"fmt"
	"time"

	"symbolize/ingest/texts"
)

// header returns lines of text about what was counted: the file and its build ID, the number of
// samples, when and on which host.
func (c *counts) header() []string {
	o, meta := &c.t.Objects[c.object], &c.t.source.Meta
	what := fmt.Sprintf("%d samples", c.stats.Samples)
	if c.stats.Traces > 0 {
		what = fmt.Sprintf("%d branches", c.stats.Traces)
	}
	if n := len(meta.Captures); n > 1 {
		what += fmt.Sprintf(" of %d captures", n)
	}
	if meta.StartNanos > 0 {
		start := time.Unix(0, meta.StartNanos).UTC()
		what += fmt.Sprintf(", %s to %s", start.Format(time.RFC3339),
			start.Add(time.Duration(meta.Duration)).Format(time.RFC3339))
	}
	if meta.Host != "" {
		what += ", host " + texts.OneLine(meta.Host)
	}
	return []string{texts.OneLine(o.File.Path) + " build ID " + o.ID.Hex(), what}
}
