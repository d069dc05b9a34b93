package calltree

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/analyze/advice"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Fold adds up one event of a profile. By event, the samples of all events are counted.
func Fold(p *ingest.Profile, opts *Options) *Stacks {
	return New(p, *opts).Fold(opts.event(), opts.Count)
}

// event is the event to fold.
func (o *Options) event() int {
	if slices.Contains(o.By, Event) {
		return AllEvents
	}
	return o.Event
}

// Head describes the samples of a report.
type Head struct {
	Event   string         `json:"event"`
	Unit    string         `json:"unit"`
	Others  []string       `json:"other_events,omitempty"` // events with samples that are not shown
	By      []string       `json:"by,omitempty"`           // if not only by function
	Total   uint64         `json:"total"`                  // before filters; shares are of it
	Samples uint64         `json:"samples"`
	Filters []string       `json:"filters,omitempty"` // "focus=regexp"
	Kept    uint64         `json:"kept"`              // after filters
	Lost    uint64         `json:"lost"`              // records that the recorders lost
	Copied  *advice.Copied `json:"copied_stacks,omitempty"`
	// Callers has what is known of callers in stacks of frame pointers that were checked.
	Callers *advice.Callers `json:"checked_callers,omitempty"`
	Latency bool            `json:"latency,omitempty"` // values are divided by the parallelism

	unmatched []string
}

// newHead describes folded samples.
func newHead(p *ingest.Profile, s *Stacks, opts *Options) Head {
	h := Head{Event: s.Event, Unit: s.Unit, Total: s.Total, Samples: s.Samples, Kept: s.Kept,
		Lost: p.Stats.Lost, Filters: opts.Filter.Active(), unmatched: s.Unmatched}
	if slices.Contains(opts.By, Event) {
		h.Event = "all"
	} else {
		h.Others = advice.OtherEvents(p, opts.Event)
	}
	for _, b := range opts.By {
		if b != Function || len(opts.By) > 1 {
			h.By = append(h.By, b.String())
		}
	}
	h.Copied, h.Callers = advice.NewCopied(&p.Stats.Copied), advice.NewCallers(&p.Stats.Callers)
	h.Latency = opts.Latency
	return h
}

// Unmatched returns the names of the filters that matched nothing.
func (h *Head) Unmatched() []string { return h.unmatched }

// write prints the lines above a table.
func (h *Head) write(w *bufio.Writer) {
	fmt.Fprintf(w, "event: %s, %s samples, total %s\n", h.Event, table.Thousands(h.Samples),
		table.Quantity(h.Total, h.Unit))
	if h.Latency {
		w.WriteString("latency: weights are divided by the number of threads that ran\n")
	}
	if len(h.Others) > 0 {
		fmt.Fprintf(w, "other events: %s (--event)\n", strings.Join(h.Others, ", "))
	}
	if h.Copied != nil {
		fmt.Fprintf(w, "stacks: %s\n", h.Copied)
	}
	if h.Callers != nil {
		fmt.Fprintf(w, "callers: %s\n", h.Callers)
	}
	if len(h.Filters) > 0 {
		for _, f := range h.Filters {
			fmt.Fprintf(w, "filter: %s\n", texts.Printable(f))
		}
		fmt.Fprintf(w, "the filter keeps %s, %s of the total\n",
			table.Quantity(h.Kept, h.Unit), table.Percent(h.Kept, h.Total))
	}
}

// ObjectSuffix is the object after a function's name, in brackets; "" if the name is the
// object's.
func ObjectSuffix(n *Node) string {
	if n.Object == "" || n.Unresolved || n.By != Function && n.By != Line {
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
