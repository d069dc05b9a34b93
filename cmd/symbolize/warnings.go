package main

import (
	"fmt"
	"strings"

	"symbolize/analyze"
	"symbolize/analyze/report"
	"symbolize/ingest"
	"symbolize/ingest/sideband"
	"symbolize/store/indexer"
)

// printWarnings prints the warnings of the inputs.
func (a *app) printWarnings(p *ingest.Profile) {
	for _, w := range p.Stats.Warnings {
		a.warn(w.Text, w.Hint)
	}
	if p.Names == nil {
		return // of a report that needs none
	}
	for _, w := range p.Names.Warnings {
		a.warn(w.Text, w.Hint)
	}
}

// printAdvice prints the warnings for readers of reports by function.
func (a *app) printAdvice(p *ingest.Profile) {
	for _, w := range report.Advice(p) {
		a.warn(w.Text, w.Hint)
	}
}

// printOtherEvents prints the events that a report of one event leaves out.
func (a *app) printOtherEvents(p *ingest.Profile, shown int) {
	if others := report.OtherEvents(p, shown); len(others) > 0 {
		a.note(fmt.Sprintf("shown is the event %s; there are also: %s", p.Events[shown].Name,
			strings.Join(others, ", ")))
	}
}

// printTaken prints the data that a capture took from other bundles, or why it took none.
func (a *app) printTaken(path string, b *sideband.Taken) {
	text := path + ": " + b.String()
	if b.Refused == "" {
		a.note(text)
		return
	}
	a.warn(text, analyze.RefusedHint)
}

func (a *app) printProblems(problems []indexer.Problem) {
	for i, p := range problems {
		if i == maxProblemLines {
			a.warn(fmt.Sprintf("… and %d more like these", len(problems)-i),
				"--format json lists them all")
			return
		}
		a.warn(p.Error(), p.Hint)
	}
}

// maxProblemLines is how many of the files that could not be read are named one
// by one; the JSON summary has all.
const maxProblemLines = 20

// reportErrors prints errors that kept single items from being done.
func (a *app) reportErrors(errs []error, more int) {
	for _, err := range errs {
		a.warn(err.Error(), "")
	}
	if more > 0 {
		a.warn(fmt.Sprintf("… and %d more", more), "")
	}
	a.partial = a.partial || len(errs) > 0
}
