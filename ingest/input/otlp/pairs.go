package otlp

import (
	"slices"

	"symbolize/ingest"
)

// pairEvents makes one event of weights and their counts, which are two profiles of the same samples
// in files that were made of pprof profiles: samples/count beside cpu/nanoseconds. Samples are
// sorted.
func pairEvents(p *ingest.Profile) {
	for i := 0; i < len(p.Events); i++ {
		ev := &p.Events[i]
		if ev.Unit == "count" || !ev.OneColumn {
			continue
		}
		for j := range p.Events {
			if counts := &p.Events[j]; j != i && counts.Unit == "count" && pair(p, i, j) {
				ev.CountColumn, ev.OneColumn = counts.Name, false
				removeEvent(p, j)
				if j < i {
					i--
				}
				break
			}
		}
	}
}

// pair gives the samples of event i the counts of event j, if the samples of both are the same but
// for their values.
func pair(p *ingest.Profile, i, j int) bool {
	weights, counts := samplesOf(p, i), samplesOf(p, j)
	if len(weights) == 0 || !slices.EqualFunc(weights, counts, func(a, b ingest.Sample) bool {
		return a.Stack == b.Stack && ingest.CompareLabels(&a, &b) == 0
	}) {
		return false
	}
	for n := range weights {
		weights[n].Count = counts[n].Weight
	}
	return true
}

// samplesOf returns the samples of an event.
func samplesOf(p *ingest.Profile, event int) []ingest.Sample {
	search := func(event int) int {
		at, _ := slices.BinarySearchFunc(p.Samples, event, func(s ingest.Sample, e int) int {
			return int(s.Event) - e
		})
		return at
	}
	return p.Samples[search(event):search(event+1)]
}

// removeEvent removes an event with its samples.
func removeEvent(p *ingest.Profile, event int) {
	p.Events = slices.Delete(p.Events, event, event+1)
	p.Samples = slices.DeleteFunc(p.Samples, func(s ingest.Sample) bool { return int(s.Event) == event })
	for i := range p.Samples {
		if s := &p.Samples[i]; int(s.Event) > event {
			s.Event--
		}
	}
}
