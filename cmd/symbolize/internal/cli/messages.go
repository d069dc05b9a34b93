package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"

	"symbolize/analyze/table"
	"symbolize/ingest/texts"
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
	a.PrintHeld()
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
	line := fmt.Sprintf("symbolize: %s: %s", kind, texts.OneLine(text))
	fmt.Fprintln(a.Env.Stderr, table.Wrap(line, a.Env.StderrWidth, "  "))
}

// rank orders the warnings of a report, of which it prints the heaviest.
type rank int

const (
	damageRank rank = iota // the result is partial
	flagRank               // of the command line
	nameRank               // names may be wrong, or sources of them are not used
	adviceRank             // of the profile: its heaviest first
	asideRank              // no warning: what the run used
	lastRank               // only with --verbose: of the recording, as info prints it
)

// message is a warning, or with asideRank a note, that a report holds back.
type message struct {
	rank       rank
	text, hint string
}

// HoldWarnings makes commands print only the heaviest of their warnings, and its hint, at their end:
// --verbose prints all, and info and missing have them.
func (a *App) HoldWarnings(commands ...*cobra.Command) {
	for _, cmd := range commands {
		body := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.holds = !a.Verbose
			return body(cmd, args)
		}
	}
}

// Warn prints a warning and its hint, if any. It prints no warning twice: a bundle is
// read once for its samples and once for its programs.
func (a *App) Warn(text, hint string) { a.warn(message{flagRank, text, hint}) }

// Damage prints a warning about a damaged input and makes the result partial.
func (a *App) Damage(text, hint string) {
	a.Partial = true
	a.warn(message{damageRank, text, hint})
}

// WarnAlike is Warn for one of many inputs, of which those with a text that differs in numbers alone
// have one warning; the others are counted at the end of the run.
func (a *App) WarnAlike(input, text, hint string) {
	kind := "alike: " + strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, strings.ReplaceAll(text, input, ""))
	if !a.Verbose && !a.first(kind) {
		a.alike++
		return
	}
	if !strings.Contains(text, input) {
		text = input + ": " + text
	}
	a.Warn(text, hint)
}

func (a *App) warn(m message) {
	switch {
	case a.Quiet || !a.first(m.text):
	case a.holds:
		a.held = append(a.held, m)
	default:
		a.print(m)
	}
}

func (a *App) print(m message) {
	kind := "warning"
	if m.rank == asideRank {
		kind = "note"
	}
	a.Print(kind, m.text)
	if m.hint != "" {
		a.Print("hint", m.hint)
	}
}

// PrintHeld prints the heaviest of the warnings that were held back, and how many others there are.
// Those of lastRank alone it does not print.
func (a *App) PrintHeld() {
	if a.alike > 0 {
		a.Note(table.Count(a.alike, "more warning", "more warnings") + " like these: -v prints them")
		a.alike = 0
	}
	held := a.held
	a.held = nil
	slices.SortStableFunc(held, func(a, b message) int { return cmp.Compare(a.rank, b.rank) })
	if len(held) == 0 || held[0].rank == lastRank {
		return
	}
	m := held[0]
	others := slices.DeleteFunc(held[1:], func(m message) bool { return m.rank >= asideRank })
	if n := len(others); n > 0 && m.rank != asideRank {
		more := "-v prints " + table.Count(n, "more warning", "more warnings")
		m.hint = table.Join("; ", m.hint, more)
	}
	a.print(m)
}

// Silent reports whether the counts of a run that succeeded are left out: with --quiet, and without a
// terminal, as cron mails each line. --verbose prints them.
func (a *App) Silent() bool {
	return a.Quiet || !a.Verbose && !a.Partial && !a.Env.StderrTerminal
}

// Note prints a message that is neither result nor warning, once.
func (a *App) Note(text string) {
	if !a.Quiet && a.first(text) {
		a.Print("note", text)
	}
}

// Aside is a note on what a run used, which a report prints only if it has no warning.
func (a *App) Aside(text string) { a.warn(message{rank: asideRank, text: text}) }

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
