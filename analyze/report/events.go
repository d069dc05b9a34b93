package report

import "symbolize/ingest"

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
