package filter

import "symbolize/ingest"

// frame has the facts about a line's frame that the next frame depends on.
type frame struct {
	line       int
	trampoline bool // a signal interrupted the next frame
	unknown    bool // possibly a signal's trampoline
}

// interrupted is a place that may not be a return address.
type interrupted struct {
	found   int
	place   place // as an exact address
	answer  *answer
	certain bool
}

// decideInterrupted makes the places after code that signal handlers return to exact: they were
// interrupted. After a frame without a name that is unknown; a place at the first byte of a
// function then stays without a name.
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
