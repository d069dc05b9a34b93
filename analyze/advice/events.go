package advice

import (
	"symbolize/ingest"

	"symbolize/ingest/texts"
)

// OtherEvents names the events besides this one that have samples.
func OtherEvents(p *ingest.Profile, event int) []string {
	has := make([]bool, len(p.Events))
	for i := range p.Samples {
		has[p.Samples[i].Event] = true
	}
	var names []string
	for i := range p.Events {
		if has[i] && i != event {
			names = append(names, texts.Printable(p.Events[i].Name))
		}
	}
	return names
}
