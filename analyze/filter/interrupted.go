package filter

import "symbolize/ingest"

// frame has the facts of a line's frame that decide about the next one.
type frame struct {
	line       int
	trampoline bool // a signal interrupted the next one
	unknown    bool // it may have been a signal's trampoline
}

// interrupted is a place that may be no return address.
type interrupted struct {
	found   int
	place   place // as an exact one
	answer  *answer
	certain bool
}

// decideInterrupted looks at the places behind code that signal handlers return to: they are where
// the signal came, and no return addresses. Behind a frame without a name that is not known; it
// makes a difference where the place is the first byte of a function, and such a place stays
// without a name.
func (r *Rewriter) decideInterrupted() {
	var list []interrupted
	for i := range r.found {
		p := &r.found[i]
		before := r.last
		r.last = frame{p.line, p.answer.trampoline, p.answer.name == "" && !p.weak}
		movable := p.form == formOffset || p.form == formAddress || p.form == formModule ||
			p.form == formProgram
		behind := before.line == p.line-1 && (before.trampoline || before.unknown)
		if !movable || !p.isReturn() || !behind && !p.doubtful {
			continue
		}
		q := p.place
		q.exact = true
		list = append(list, interrupted{found: i, place: q, certain: behind && before.trampoline})
	}
	for i := range list {
		list[i].answer = r.answerTo(&list[i].place)
	}
	r.lookUp()
	for _, x := range list {
		p := &r.found[x.found]
		switch {
		case x.certain:
			p.place, p.answer = x.place, x.answer
		case x.answer.atStart && p.answer.name != "":
			p.answer = &answer{reason: ingest.Ambiguous}
		}
	}
}
