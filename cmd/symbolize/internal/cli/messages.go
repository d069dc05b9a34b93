package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"symbolize/analyze/table"
	"symbolize/ingest"
)

// errBrokenPipe: the reader of standard output has closed it, as `… | head` does.
var errBrokenPipe = errors.New("standard output was closed")

// pipeWriter marks the broken pipe of standard output, to distinguish it from every other EPIPE.
type pipeWriter struct{ w io.Writer }

func (p *pipeWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = errBrokenPipe
	}
	return n, err
}

// finish prints the error and returns the exit status.
func (a *App) finish(ctx context.Context, err error) int {
	switch {
	case errors.Is(err, errBrokenPipe):
		return OK
	case err == nil && a.Partial:
		return Partial
	case err == nil:
		return OK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		a.Print("error", "interrupted")
		return Interrupted
	}
	code := Failed
	var coded *ExitError
	if errors.As(err, &coded) {
		code = coded.Code
		if coded.Err == nil {
			return code
		}
	}
	if code == Unresolved && a.Partial {
		code = Partial // an unread input may be the reason; both are reported
	}
	a.Print("error", err.Error())
	if hint := Hint(err); hint != "" {
		a.Print("hint", hint)
	}
	return code
}

// Print prints one line of the form `symbolize: KIND: TEXT` on stderr, several on a terminal that
// is narrower. Names in it may come from captures and files: no control character reaches the
// terminal.
func (a *App) Print(kind, text string) {
	line := fmt.Sprintf("symbolize: %s: %s", kind, ingest.OneLine(text))
	fmt.Fprintln(a.Env.Stderr, table.Wrap(line, a.Env.StderrWidth, "  "))
}

// Warn prints a warning and its hint, if any. It prints no warning twice: a bundle is
// read once for its samples and once for its programs.
func (a *App) Warn(text, hint string) {
	if a.Quiet || !a.first(text) {
		return
	}
	a.Print("warning", text)
	if hint != "" {
		a.Print("hint", hint)
	}
}

// Damage prints a warning about a damaged input and makes the result partial.
func (a *App) Damage(text, hint string) {
	a.Partial = true
	a.Warn(text, hint)
}

// Note prints a message that is neither result nor warning, once.
func (a *App) Note(text string) {
	if !a.Quiet && a.first(text) {
		a.Print("note", text)
	}
}

// first reports whether a message is printed for the first time.
func (a *App) first(text string) bool {
	if a.printed[text] {
		return false
	}
	if a.printed == nil {
		a.printed = make(map[string]bool)
	}
	a.printed[text] = true
	return true
}

// drawsBars reports whether progress bars are drawn on stderr.
func (a *App) drawsBars() bool {
	return !a.Quiet && a.Env.StderrTerminal && a.Env.Getenv("TERM") != "dumb"
}

// StartProgress returns a progress bar on stderr of what a verb does with parts ("objects").
func (a *App) StartProgress(verb, parts string) *Bar {
	return NewBar(a.progressWriter(), verb, parts, a.Note)
}

// StartSteps shows the steps of a batch on stderr.
func (a *App) StartSteps() *Steps {
	return NewSteps(a.progressWriter(), a.Note)
}

// progressWriter returns the terminal for progress bars, nil if lines are printed instead.
func (a *App) progressWriter() io.Writer {
	if a.drawsBars() {
		return a.Env.Stderr
	}
	return nil
}
