package calls

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/analyze/calltree"
	"symbolize/analyze/report"
	"symbolize/analyze/table"
	"symbolize/ingest"
)

// Options select the samples that are added up, and the nodes by which.
type Options struct {
	Event     int           // which of Profile.Events
	Count     bool          // samples instead of weight
	By        []calltree.By // nil is by function
	Filter    calltree.Filter
	Demangler *report.Demangler // nil shows simple names
	Squares   bool              // as in calltree.Options
}

// Fold adds up one event of a profile. By event, the samples of all events are counted.
func Fold(p *ingest.Profile, opts *Options) *calltree.Stacks {
	if opts.Demangler == nil {
		opts.Demangler = report.NewDemangler(report.Simple)
	}
	opts.Demangler.Warm(p)
	event := opts.Event
	if slices.Contains(opts.By, calltree.Event) {
		event = calltree.AllEvents
	}
	f := calltree.New(p, calltree.Options{By: opts.By, Filter: opts.Filter,
		Name: opts.Demangler.Name, Squares: opts.Squares})
	return f.Fold(event, opts.Count)
}

// Head describes the samples of a report.
type Head struct {
	Event   string         `json:"event"`
	Unit    string         `json:"unit"`
	Others  []string       `json:"other_events,omitempty"` // events with samples that are not shown
	By      []string       `json:"by,omitempty"`           // if not by function alone
	Total   uint64         `json:"total"`                  // before filters; shares are of it
	Samples uint64         `json:"samples"`
	Filters []string       `json:"filters,omitempty"` // "focus=regexp"
	Kept    uint64         `json:"kept"`              // after filters
	Copied  *report.Copied `json:"copied_stacks,omitempty"`

	unmatched []string
}

// newHead describes folded samples.
func newHead(p *ingest.Profile, s *calltree.Stacks, opts *Options) Head {
	h := Head{Event: s.Event, Unit: s.Unit, Total: s.Total, Samples: s.Samples, Kept: s.Kept,
		Filters: opts.Filter.Active(), unmatched: s.Unmatched}
	if slices.Contains(opts.By, calltree.Event) {
		h.Event = "all"
	} else {
		h.Others = report.OtherEvents(p, opts.Event)
	}
	for _, b := range opts.By {
		if b != calltree.Function || len(opts.By) > 1 {
			h.By = append(h.By, b.String())
		}
	}
	h.Copied = report.NewCopied(&p.Stats.Copied)
	return h
}

// Unmatched returns the names of those filters that matched nothing.
func (h *Head) Unmatched() []string { return h.unmatched }

// write prints the lines above a table.
func (h *Head) write(w *bufio.Writer) {
	fmt.Fprintf(w, "event: %s, %s samples, total %s\n", h.Event, table.Thousands(h.Samples),
		table.Quantity(h.Total, h.Unit))
	if len(h.Others) > 0 {
		fmt.Fprintf(w, "other events: %s (--event)\n", strings.Join(h.Others, ", "))
	}
	if h.Copied != nil {
		fmt.Fprintf(w, "stacks: %s\n", h.Copied)
	}
	if len(h.Filters) > 0 {
		for _, f := range h.Filters {
			fmt.Fprintf(w, "filter: %s\n", ingest.Printable(f))
		}
		fmt.Fprintf(w, "the filter keeps %s, %s of the total\n",
			table.Quantity(h.Kept, h.Unit), table.Percent(h.Kept, h.Total))
	}
}

// ObjectSuffix is the object behind a function's name, in brackets; "" where the name is the
// object's.
func ObjectSuffix(n *calltree.Node) string {
	if n.Object == "" || n.Unresolved || n.By != calltree.Function && n.By != calltree.Line {
		return ""
	}
	// A BPF function is an object of its own name.
	if object := ingest.BaseName(n.Object); object != n.Name {
		return "  (" + object + ")"
	}
	return ""
}

// flushing runs a writer's body and returns its first error.
func flushing(w io.Writer, body func(*bufio.Writer)) error {
	out := bufio.NewWriter(w)
	body(out)
	return out.Flush()
}
