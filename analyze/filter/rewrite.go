package filter

import (
	"bytes"
	"io"

	"symbolize/analyze/demangle"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
)

// The state kept between batches.
const (
	maxAnswers  = 1 << 16 // remembered answers
	maxTexts    = 1 << 20 // strings of tables
	maxProblems = 20
)

// Options are for New.
type Options struct {
	Names     resolve.NamePolicy
	Demangle  demangle.Mode
	NoInlines bool // leave out inlined calls
	Exact     bool // no address is a return address
	// Kernel is the build ID of the kernel of symbols without a module, until the text names
	// another.
	Kernel buildid.ID
	// Files returns the build IDs of the files that may have a name or path in the text, each
	// once. A single one is used; a nil function knows none.
	Files func(name string) []buildid.ID
	// Programs are the build IDs of the files that the user named. One may be the crashed program.
	Programs []buildid.ID
}

// Rewriter rewrites text. It is not safe for concurrent use.
type Rewriter struct {
	scanner scanner
	finder  finder
	known   map[string]*answer // by key of place
	stats   Stats

	// Of the current batch.
	found   []located
	ask     []*place
	answers []*answer
	key     []byte
	out     []byte

	last frame // before the current place, possibly in an earlier batch
}

// located is a place in a batch, with its answer.
type located struct {
	place
	line   int
	answer *answer
}

// New returns a Rewriter with names from a view.
func New(view store.View, opts Options) *Rewriter {
	return &Rewriter{
		scanner: scanner{kernel: opts.Kernel, unnamed: opts.Kernel, exact: opts.Exact},
		finder: finder{view: view, policy: opts.Names, noInlines: opts.NoInlines,
			files: opts.Files, programs: opts.Programs,
			demangler: demangle.New(opts.Demangle)},
		known: make(map[string]*answer),
	}
}

// Rewrite writes a batch of text to w, with names. A batch has whole lines, except at the end of
// the text; larger batches read tables less often. The text may be overwritten afterwards. Errors
// are those of w.
func (r *Rewriter) Rewrite(w io.Writer, text []byte) error {
	r.scanAll(text)
	r.lookUp()
	r.decideInterrupted()
	r.out = r.out[:0]
	at := 0
	for i := range r.found {
		p := &r.found[i]
		r.out = append(r.out, text[at:p.start]...)
		r.out = p.answer.appendTo(r.out, &p.place, text[p.start:p.end])
		r.count(p)
		at = p.end
	}
	if len(r.found) == 0 {
		_, err := w.Write(text)
		return err
	}
	r.out = append(r.out, text[at:]...)
	_, err := w.Write(r.out)
	return err
}

// scanAll finds the places of a batch, and lists the new ones.
func (r *Rewriter) scanAll(text []byte) {
	r.found = r.found[:0]
	if len(r.known) > maxAnswers {
		clear(r.known)
	}
	at := 0
	for line := range bytes.Lines(text) {
		for _, p := range r.scanner.scan(line) {
			p.start += at
			p.end += at
			r.found = append(r.found, located{place: p, line: r.scanner.line})
		}
		at += len(line)
	}
	for i := range r.found {
		p := &r.found[i]
		p.answer = r.answerTo(&p.place)
	}
}

// answerTo returns the answer for a place, which lookUp fills if it is new.
func (r *Rewriter) answerTo(p *place) *answer {
	r.key = p.appendKey(r.key[:0])
	a := r.known[string(r.key)]
	if a == nil {
		a = new(answer)
		r.known[string(r.key)] = a
		r.ask, r.answers = append(r.ask, p), append(r.answers, a)
	}
	return a
}

// lookUp answers new places.
func (r *Rewriter) lookUp() {
	if len(r.ask) > 0 {
		r.finder.find(r.ask, r.answers)
	}
	clear(r.ask)
	r.ask, r.answers = r.ask[:0], r.answers[:0]
}

// count counts a written place.
func (r *Rewriter) count(p *located) {
	a := p.answer
	switch {
	case !a.empty():
		r.stats.Places++
		r.stats.Named++
		if a.probable {
			r.stats.Probable++
		}
		if a.byFile {
			r.stats.ByFile++
		}
	case p.weak && a.reason == ingest.NotIndexed:
	default:
		r.stats.Places++
		r.stats.leave(&p.place, a)
	}
}

// Stats returns the counts so far.
func (r *Rewriter) Stats() *Stats {
	r.stats.LateMaps = r.scanner.process.late
	return &r.stats
}

// Problems returns the errors of tables, each once.
func (r *Rewriter) Problems() []string { return r.finder.problems }

// Conflicts returns warnings about contradicting files with one build ID.
func (r *Rewriter) Conflicts() []string { return r.finder.conflicts }
