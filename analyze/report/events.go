package report

import "symbolize/ingest"

// DefaultEvent is the event that reports of one event show when none is named: the first that
// has samples.
func DefaultEvent(p *ingest.Profile) int {
	first := len(p.Events)
	for i := range p.Samples {
		first = min(first, int(p.Samples[i].Event))
	}
	if first == len(p.Events) {
		return 0
	}
	return first
}

// OtherEvents names the events besides this one that have samples.
func OtherEvents(p *ingest.Profile, event int) []string {
	has := make([]bool, len(p.Events))
	for i := range p.Samples {
		has[p.Samples[i].Event] = true
	}
	var names []string
	for i := range p.Events {
		if has[i] && i != event {
			names = append(names, ingest.Printable(p.Events[i].Name))
		}
	}
	return names
}
