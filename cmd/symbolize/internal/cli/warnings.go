package cli

import (
	"fmt"
	"strings"

	"symbolize/analyze"
	"symbolize/analyze/advice"
	"symbolize/ingest"
	"symbolize/ingest/sideband"
	"symbolize/store/indexer"
)

// PrintWarnings prints the warnings of the inputs.
func (a *App) PrintWarnings(p *ingest.Profile) {
	for _, w := range p.Stats.Warnings {
		a.warning(w, lastRank)
	}
	if p.Names == nil {
		return // of a report that needs none
	}
	for _, w := range p.Names.Warnings {
		a.warning(w, nameRank)
	}
}

// warning prints a warning of this rank or a heavier one.
func (a *App) warning(w ingest.Warning, r rank) {
	switch {
	case w.Partial:
		r = damageRank
	case w.Result:
		r = nameRank
	}
	a.warn(message{r, w.Text, w.Hint})
}

// PrintAdvice prints the warnings for readers of reports by function.
func (s *Session) PrintAdvice(p *ingest.Profile) {
	for _, w := range advice.Warnings(p, s.Elsewhere(p)) {
		s.App.warning(w, adviceRank)
	}
}

// PrintOtherEvents prints the events that a report of one event leaves out.
func (a *App) PrintOtherEvents(p *ingest.Profile, shown int) {
	if others := advice.OtherEvents(p, shown); len(others) > 0 {
		a.Note(fmt.Sprintf("shown is the event %s; there are also: %s", p.Events[shown].Name,
			strings.Join(others, ", ")))
	}
}

// PrintTaken prints the data that a capture used from other bundles, or the reason why it used
// none.
func (a *App) PrintTaken(path string, b *sideband.Contribution) {
	text := path + ": " + b.String()
	if b.Refused == "" {
		a.Aside(text)
		return
	}
	a.Warn(text, analyze.RefusedHint)
}

// PrintProblems prints the files that an indexer could not read, the first of them one by one.
func (a *App) PrintProblems(problems []indexer.Problem) {
	WarnEach(a, problems, func(p indexer.Problem) (text, hint string) {
		return p.Error(), p.Hint
	}, MoreLikeThese)
}

// maxListedWarnings is how many of the items of a list have a warning each.
const maxListedWarnings = 20

// WarnEach prints a warning for each item of a list, and from some number on one for all that are
// left, with their number.
func WarnEach[T any](a *App, list []T, warning func(T) (text, hint string),
	more func(left int) (text, hint string)) {
	for i, item := range list {
		if i == maxListedWarnings {
			a.Warn(more(len(list) - i))
			return
		}
		a.Warn(warning(item))
	}
}

// MoreLikeThese is the last warning about files, of which --format json has all.
func MoreLikeThese(left int) (text, hint string) {
	return fmt.Sprintf("… and %d more like these", left), "--format json lists them all"
}

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
