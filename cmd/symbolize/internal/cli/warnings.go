package cli

import (
	"fmt"
	"strings"

	"symbolize/analyze"
	"symbolize/analyze/report"
	"symbolize/ingest"
	"symbolize/ingest/sideband"
	"symbolize/store/indexer"
)

// PrintWarnings prints the warnings of the inputs.
func (a *App) PrintWarnings(p *ingest.Profile) {
	for _, w := range p.Stats.Warnings {
		a.Warn(w.Text, w.Hint)
	}
	if p.Names == nil {
		return // of a report that needs none
	}
	for _, w := range p.Names.Warnings {
		a.Warn(w.Text, w.Hint)
	}
}

// PrintAdvice prints the warnings for readers of reports by function.
func (a *App) PrintAdvice(p *ingest.Profile) {
	for _, w := range report.Advice(p) {
		a.Warn(w.Text, w.Hint)
	}
}

// PrintOtherEvents prints the events that a report of one event leaves out.
func (a *App) PrintOtherEvents(p *ingest.Profile, shown int) {
	if others := report.OtherEvents(p, shown); len(others) > 0 {
		a.Note(fmt.Sprintf("shown is the event %s; there are also: %s", p.Events[shown].Name,
			strings.Join(others, ", ")))
	}
}

// PrintTaken prints the data that a capture took from other bundles, or why it took none.
func (a *App) PrintTaken(path string, b *sideband.Taken) {
	text := path + ": " + b.String()
	if b.Refused == "" {
		a.Note(text)
		return
	}
	a.Warn(text, analyze.RefusedHint)
}

// PrintProblems prints the files that an indexer could not read, the first of them one by one.
func (a *App) PrintProblems(problems []indexer.Problem) {
	for i, p := range problems {
		if i == MaxProblemLines {
			a.Warn(fmt.Sprintf("… and %d more like these", len(problems)-i),
				"--format json lists them all")
			return
		}
		a.Warn(p.Error(), p.Hint)
	}
}

// MaxProblemLines is how many of the files that could not be read are named one
// by one; the JSON summary has all.
const MaxProblemLines = 20

// ReportErrors prints errors that kept single items from being done.
func (a *App) ReportErrors(errs []error, more int) {
	for _, err := range errs {
		a.Warn(err.Error(), "")
	}
	if more > 0 {
		a.Warn(fmt.Sprintf("… and %d more", more), "")
	}
	a.Partial = a.Partial || len(errs) > 0
}
