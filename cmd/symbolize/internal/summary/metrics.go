package summary

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// label is a name and a value.
type label struct{ name, value string }

// sample is one line of a metric.
type sample struct {
	labels []label
	value  float64
}

// WriteMetrics writes the run in the text format of Prometheus, version 0.0.4: all are gauges, as
// they are of the last run, and have the label command.
// https://prometheus.io/docs/instrumenting/exposition_formats/
func (r *Run) WriteMetrics(w io.Writer) error {
	r.finish()
	out := bufio.NewWriter(w)
	one := func(v float64) []sample { return []sample{{value: v}} }
	for _, m := range []struct {
		name, help string
		samples    []sample
	}{
		{"captures", "Captures of the last run, including unreadable ones.",
			one(float64(r.Captures))},
		{"captures_failed", "Captures that could not be read.", one(float64(r.Failed))},
		{"captures_missing", "Captures of a batch that are not collected.", one(float64(r.Absent))},
		{"samples", "Samples of the profiles.", one(float64(r.Samples))},
		{"named_samples", "Samples with an innermost frame that has a function name, by kind of code.",
			r.kinds(func(k *Kind) uint64 { return k.NamedSamples })},
		{"frames", "Frames of all samples, by kind of code.",
			r.kinds(func(k *Kind) uint64 { return k.Frames })},
		{"named_frames", "Frames with a function name, by kind of code.",
			r.kinds(func(k *Kind) uint64 { return k.Named })},
		{"unnamed_samples", "Samples with an innermost frame without a name, by reason.",
			r.reasons(func(g *Gap) uint64 { return g.Samples })},
		{"unnamed_frames", "Frames without a name, by reason.",
			r.reasons(func(g *Gap) uint64 { return g.Frames })},
		{"tables_opened", "Symbol tables that were opened.", one(float64(r.Tables))},
		{"duration_seconds", "Time that the run took.", one(r.Seconds)},
		{"cpu_seconds", "Processor time of the run.", one(r.CPU)},
		{"peak_memory_bytes", "Most resident memory of the run.", one(float64(r.Memory))},
		{"exit_status", "Exit status: 0 done, 3 partial, 4 less named than asked for, 5 grown.",
			one(float64(r.Exit))},
		{"finished_timestamp_seconds", "When the run ended, in seconds since 1970.",
			one(float64(r.Finished))},
	} {
		if len(m.samples) == 0 || len(m.samples[0].labels) == 0 && optional(m.name) &&
			m.samples[0].value == 0 {
			continue
		}
		name := "symbolize_" + m.name
		fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, m.help, name)
		for _, s := range m.samples {
			fmt.Fprintf(out, "%s{%s} %s\n", name, labels(append([]label{{"command", r.Command}},
				s.labels...)), strconv.FormatFloat(s.value, 'g', -1, 64))
		}
	}
	return out.Flush()
}

// optional reports whether a metric is left out where it is 0: not every system or command has it.
func optional(name string) bool {
	return name == "cpu_seconds" || name == "peak_memory_bytes" || name == "captures_missing"
}

// labels writes label="value" pairs. In a value a backslash, a quote and a line feed are escaped.
func labels(list []label) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	words := make([]string, len(list))
	for i, l := range list {
		words[i] = l.name + `="` + escape.Replace(l.value) + `"`
	}
	return strings.Join(words, ",")
}

func (r *Run) kinds(value func(*Kind) uint64) (list []sample) {
	for i := range r.Kinds {
		k := &r.Kinds[i]
		list = append(list, sample{[]label{{"kind", k.Kind}}, float64(value(k))})
	}
	return list
}

// reasons sums the gaps by reason. Objects are no labels: there can be thousands.
func (r *Run) reasons(value func(*Gap) uint64) (list []sample) {
	for i := range r.Missing {
		g := &r.Missing[i]
		at := slices.IndexFunc(list, func(s sample) bool { return s.labels[0].value == g.Reason })
		if at < 0 {
			at = len(list)
			list = append(list, sample{labels: []label{{"reason", g.Reason}}})
		}
		list[at].value += float64(value(g))
	}
	slices.SortFunc(list, func(a, b sample) int {
		return cmp.Compare(a.labels[0].value, b.labels[0].value)
	})
	return list
}
