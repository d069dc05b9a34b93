// Package summary describes a run of a command in numbers: as JSON, and for Prometheus.
package summary

import (
	"cmp"
	"io"
	"slices"

	"symbolize/analyze/advice"
	"symbolize/ingest/texts"
	"symbolize/store/remote"
)

// Run describes one run of a command. Frames count once for each sample that they are in.
type Run struct {
	Command  string `json:"command"`  // "resolve", "batch run"
	Captures int    `json:"captures"` // all, unreadable ones too
	Failed   int    `json:"captures_failed"`
	Samples  uint64 `json:"samples"`
	// NamedSamples have an innermost frame with a function name.
	NamedSamples uint64  `json:"named_samples"`
	Lost         uint64  `json:"lost"`                       // records that the recorders lost
	Absent       int     `json:"captures_missing,omitempty"` // of a batch
	Frames       uint64  `json:"frames"`
	Named        uint64  `json:"named_frames"`
	Kinds        []Kind  `json:"kinds"`   // of code: user, kernel, bpf, jit
	Missing      []Gap   `json:"missing"` // most samples first
	Tables       uint64  `json:"tables_opened"`
	Seconds      float64 `json:"seconds"`
	CPU          float64 `json:"cpu_seconds,omitempty"`       // of all cores; 0 where it is not known
	Memory       uint64  `json:"peak_memory_bytes,omitempty"` // resident; 0 where it is not known
	Exit         int     `json:"exit_status"`
	Finished     int64   `json:"finished_unix"` // wall clock, s since 1970
	// Remote counts tables from --remote; a batch's is in Batch.
	Remote remote.PullResult `json:"remote,omitzero"`
	// Batch has the counts of a batch, nil of other commands.
	Batch any `json:"batch,omitempty"`
	// Profiles are the profiles by themselves; a batch's are not listed.
	Profiles []*advice.Coverage `json:"profiles,omitempty"`
}

// Kind counts the frames of one kind of code.
type Kind struct {
	Kind   string `json:"kind"`
	Frames uint64 `json:"frames"`
	Named  uint64 `json:"named_frames"`
	// Samples have their innermost frame in this kind of code.
	Samples      uint64 `json:"samples"`
	NamedSamples uint64 `json:"named_samples"`
}

// Gap counts the frames of one object that have no name for one reason, and the samples that end
// in them.
type Gap struct {
	Object  string `json:"object"`
	Kind    string `json:"kind"`
	BuildID string `json:"build_id,omitempty"`
	Reason  string `json:"reason"`
	Samples uint64 `json:"samples"`
	Frames  uint64 `json:"frames"`
	Hint    string `json:"hint,omitempty"`
}

// Add adds the counts of a profile, but for its captures. It is not safe for use by several
// goroutines.
func (r *Run) Add(c *advice.Coverage) {
	r.Samples += c.Samples
	r.Frames += c.Frames
	r.Lost += c.Lost
	for i := range c.Domains {
		d := &c.Domains[i]
		at := slices.IndexFunc(r.Kinds, func(k Kind) bool { return k.Kind == d.Domain })
		if at < 0 {
			at = len(r.Kinds)
			r.Kinds = append(r.Kinds, Kind{Kind: d.Domain})
		}
		r.Kinds[at].Frames += d.Frames
		r.Kinds[at].Named += d.NamedFrames
		r.Kinds[at].Samples += d.Samples
		r.Kinds[at].NamedSamples += d.NamedSamples
		r.Named += d.NamedFrames
		r.NamedSamples += d.NamedSamples
	}
	for i := range c.Missing {
		m := &c.Missing[i]
		r.Missing = append(r.Missing, Gap{Object: m.Object, Kind: m.Kind, BuildID: m.BuildID,
			Reason: m.Reason, Samples: m.Samples, Frames: m.Frames, Hint: m.Hint})
	}
	if len(r.Missing) > 2*maxGaps {
		r.join()
	}
}

// maxGaps bounds the gaps in memory, and the listed ones.
const maxGaps = 10_000

// join sums the gaps of each object and reason. The hint is from the first profile in the
// order of hints: it can name captures.
func (r *Run) join() *Run {
	slices.SortFunc(r.Missing, func(a, b Gap) int {
		return cmp.Or(compareGaps(&a, &b), cmp.Compare(a.Hint, b.Hint))
	})
	out := r.Missing[:0]
	for _, g := range r.Missing {
		if n := len(out); n > 0 && compareGaps(&out[n-1], &g) == 0 {
			out[n-1].Samples += g.Samples
			out[n-1].Frames += g.Frames
		} else {
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(b.Frames, a.Frames))
	})
	r.Missing = out[:min(len(out), maxGaps)]
	return r
}

func compareGaps(a, b *Gap) int {
	return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.BuildID, b.BuildID),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reason, b.Reason))
}

// finish puts everything into its order.
func (r *Run) finish() {
	r.join()
	slices.SortFunc(r.Kinds, func(a, b Kind) int { return cmp.Compare(a.Kind, b.Kind) })
	if r.Kinds == nil {
		r.Kinds = []Kind{}
	}
	if r.Missing == nil {
		r.Missing = []Gap{}
	}
}

// WriteJSON writes the run as one JSON object.
func (r *Run) WriteJSON(w io.Writer) error {
	r.finish()
	return texts.WriteJSON(w, "summary/1", r)
}
