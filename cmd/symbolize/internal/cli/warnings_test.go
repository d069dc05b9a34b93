package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"symbolize/store/indexer"
)

// TestPrintProblems: the first problems have a line each, and the others one for all.
func TestPrintProblems(t *testing.T) {
	for _, tt := range []struct{ problems, lines int }{
		{problems: 0}, {problems: 3, lines: 3}, {problems: maxListedWarnings, lines: maxListedWarnings},
		{problems: maxListedWarnings + 5, lines: maxListedWarnings + 2},
	} {
		env, _, stderr := inProcess()
		var list []indexer.Problem
		for i := range tt.problems {
			list = append(list, indexer.Problem{Path: fmt.Sprint(i), Err: errors.New("no ELF file")})
		}
		a := &App{Env: env}
		a.PrintProblems(list)
		text := stderr.String()
		if n := strings.Count(text, "\n"); n != tt.lines {
			t.Errorf("%d problems: %d lines, want %d:\n%s", tt.problems, n, tt.lines, text)
		}
		if more := tt.problems - maxListedWarnings; more > 0 && !strings.HasSuffix(text,
			fmt.Sprintf("symbolize: warning: … and %d more like these\n"+
				"symbolize: hint: --format json lists them all\n", more)) {
			t.Errorf("%d problems end in\n%s", tt.problems, text)
		}
	}
}
