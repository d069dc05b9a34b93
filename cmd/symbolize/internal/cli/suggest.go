package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/ingest"
)

// SuggestionDistance is how many letters a mistyped command or flag may be off.
const SuggestionDistance = 2

// toolCommands are commands of perf, pprof, binutils and FlameGraph, with ours for each task.
var toolCommands = map[string]string{
	"archive":       "index --for CAPTURE",
	"buildid-cache": "index PATH",
	"buildid-list":  "info CAPTURE",
	"data":          "resolve -o x.pb.gz CAPTURE",
	"evlist":        "info CAPTURE",
	"record":        "capture --stacks -o FILE -- COMMAND",
	"sched":         "capture --stacks --off-cpu -o FILE -- COMMAND",
	"script":        "resolve --format script CAPTURE",
	"trace":         "capture --stacks --event GROUP:TRACEPOINT -o FILE",

	"prog": "annotate CAPTURE PROGRAM",

	"disasm":  "annotate CAPTURE FUNCTION",
	"http":    "web PROFILE",
	"list":    "annotate CAPTURE FUNCTION",
	"proto":   "resolve -o x.pb.gz CAPTURE",
	"raw":     "info PROFILE",
	"svg":     "flamegraph -o x.svg PROFILE",
	"text":    "top PROFILE",
	"traces":  "resolve --format script PROFILE",
	"weblist": "annotate -o x.html CAPTURE FUNCTION",

	"addr2line":       "lookup -e FILE ADDR",
	"difffolded":      "diff --format folded BASE NEW",
	"flame":           "flamegraph -o x.html CAPTURE",
	"llvm-symbolizer": "lookup -e FILE ADDR",
	"stackcollapse":   "resolve --format folded CAPTURE",
	"symbolizer":      "lookup -e FILE ADDR",
}

// toolFlagHints are flags of perf and pprof that no command of ours has under this name, with
// the flag or command that gives the same result.
var toolFlagHints = map[string]string{
	"C":            "`symbolize btf FILE TYPE` prints a type as C, with offsets and sizes",
	"e":            "an event is --event EVENT; `symbolize lookup -e FILE ADDR` looks addresses up",
	"sizes":        "`symbolize btf FILE` lists the types with their sizes",
	"call-graph":   "`symbolize tree` and `symbolize flamegraph` show who calls whom",
	"children":     "top has both columns, flat and cum: --sort cum sorts by the second",
	"comms":        "--comm NAME selects threads by name",
	"cum":          "--sort cum sorts by it",
	"diff_base":    "`symbolize diff BASE NEW` compares profiles",
	"dso":          "--by object adds up by object, --focus NAME selects one",
	"dsos":         "--by object adds up by object, --focus NAME selects one",
	"flat":         "--sort flat sorts by it",
	"functions":    "--by function adds up by function",
	"http":         "`symbolize web` serves the pages of pprof",
	"i":            "captures are arguments, without a flag",
	"input":        "captures are arguments, without a flag",
	"list":         "`symbolize annotate CAPTURE FUNCTION` prints the code of functions",
	"lines":        "--by line adds up by line",
	"no-children":  "--sort flat sorts by the samples in functions themselves",
	"nodecount":    "-n N prints the N heaviest",
	"nodefraction": "--min-share PCT leaves out lighter ones",
	"sample_index": "--event EVENT chooses the event",
	"show_from":    "--show-from REGEXP leaves out the frames above",
	"stdio":        "`symbolize top` prints text; report writes a page",
	"sort":         "--by adds up by other attributes, such as --by object",
	"svg":          "`symbolize flamegraph -o x.svg` draws",
	"tagfocus":     "--comm, --pid and --by select and group by labels",
	"text":         "`symbolize top` prints text",
	"top":          "`symbolize top` prints the heaviest functions",
	"traces":       "`symbolize resolve --format script` prints each stack",
}

// UnknownCommand is the error of a word that is no subcommand of cmd, with the nearest one that
// is, or with ours for a task that other tools have a command for.
func UnknownCommand(cmd *cobra.Command, word string) error {
	err := fmt.Errorf("unknown command %q for %q", word, cmd.CommandPath())
	ours := toolCommands[word]
	if !cmd.HasParent() && ours != "" {
		return ingest.WithHint(err, "`%s %s` does that", cmd.CommandPath(), ours)
	}
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return ingest.WithHint(err, "did you mean `%s %s`?", cmd.CommandPath(), near[0])
	}
	if !cmd.HasParent() {
		if sub, rest, e := cmd.Find([]string{"store", word}); e == nil && len(rest) == 0 {
			return ingest.WithHint(err, "did you mean `%s`?", sub.CommandPath())
		}
	}
	if !cmd.HasAvailableSubCommands() {
		return ingest.WithHint(err, "`%s --help` describes the command line", cmd.CommandPath())
	}
	return ingest.WithHint(err, "`%s --help` lists the commands", cmd.CommandPath())
}

// FlagError makes an error of pflag one in our words: without texts of Go's libraries, and with
// the flag that was meant where one is near.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var without *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &without):
		f := without.GetFlag()
		name, _ := pflag.UnquoteUsage(f)
		return fmt.Errorf("--%s needs a value: --%s %s", f.Name, f.Name, name)
	case errors.As(err, &invalid):
		return invalidValue(invalid)
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: not the form of a flag", syntax.GetSpecifiedFlag())
	}
	return err
}

// unknownFlag is the error of a flag that cmd does not have.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	word, group := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
	err := fmt.Errorf("unknown flag: --%s", word)
	if group != "" {
		err = fmt.Errorf("unknown flag: -%s", word)
		if len(group) > 1 { // as pprof writes them, with one dash
			err = fmt.Errorf("unknown flag: -%s in -%s", word, group)
			long, _, _ := strings.Cut(group, "=")
			if f := nearFlag(cmd, long); f != "" {
				return ingest.WithHint(err, "did you mean `--%s`?", f)
			}
			word = long
		}
	} else if f := nearFlag(cmd, word); f != "" {
		return ingest.WithHint(err, "did you mean `--%s`?", f)
	}
	if hint := toolFlagHints[word]; hint != "" {
		return ingest.WithHint(err, "%s", hint)
	}
	return err
}

// nearFlag returns the visible flag of cmd that word is a beginning of, or a misspelling, "" for
// none. The nearest one wins, of equally near ones the first by name.
func nearFlag(cmd *cobra.Command, word string) (near string) {
	best := SuggestionDistance + 1
	visit := func(f *pflag.Flag) {
		d := distance(strings.ReplaceAll(word, "_", "-"), f.Name)
		switch {
		case f.Hidden || len(word) < 2:
			return
		case strings.HasPrefix(f.Name, word):
			d = 1
		case d >= len(word): // everything is near to a short word
			return
		}
		if d < best || d == best && f.Name < near {
			best, near = d, f.Name
		}
	}
	cmd.LocalFlags().VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit)
	return near
}

// maxNear is how many near names a suggestion has, maxSome how many names a message lists.
const maxNear, maxSome = 3, 3

// Nearest returns the names that were meant by a word, at most three: those that contain it in
// other letters of its case, otherwise those with the smallest distance, which must be less than a
// third of the word. Of equal names the first ones are returned.
func Nearest(word string, names []string) (near []string) {
	low := strings.ToLower(word)
	for _, name := range names {
		if len(near) < maxNear && strings.Contains(strings.ToLower(name), low) {
			near = append(near, name)
		}
	}
	if len(near) > 0 {
		return near
	}
	best := len(word)/3 + 1
	for _, name := range names {
		d := distance(low, strings.ToLower(name))
		if i := strings.LastIndexAny(name, ":."); i >= 0 { // "run" of "app::run"
			d = min(d, distance(low, strings.ToLower(name[i+1:])))
		}
		if d < best {
			best, near = d, nil
		}
		if d == best && d <= len(word)/3 && len(near) < maxNear {
			near = append(near, name)
		}
	}
	return near
}

// Some returns a text with the first names of a list, and how many more there are.
func Some(names []string) string {
	if n := len(names) - maxSome; n > 1 {
		return strings.Join(names[:maxSome], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}

// distance is the number of letters to insert, remove, replace or exchange with their neighbour
// that makes b of a.
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// invalidValue is the error of a value that its flag does not accept.
func invalidValue(e *pflag.InvalidValueError) error {
	f := e.GetFlag()
	var own *ExitError
	if errors.As(e, &own) { // of a value of ours
		return fmt.Errorf("--%s %w", f.Name, own.Err)
	}
	expected := "a value of another form"
	switch kind := f.Value.Type(); kind {
	case "int", "int32", "int64", "uint", "uint32", "uint64":
		expected = "a whole number"
		if isNumber(e.GetValue()) {
			return fmt.Errorf("--%s %s: the number is too large", f.Name, e.GetValue())
		}
	case "intSlice", "int32Slice":
		expected = "whole numbers separated by commas"
	case "float64":
		expected = "a number"
	case "bool":
		expected = "true or false"
	case "duration":
		expected = "a time with its unit: 30s, 5m or 1h"
	case "stringSlice":
		expected = "names separated by commas; quotes are doubled"
	default:
		if cause := errors.Unwrap(e); cause != nil { // a value of ours names its form
			expected = cause.Error()
		}
	}
	return fmt.Errorf("--%s %q: expected %s", f.Name, e.GetValue(), expected)
}

// isNumber reports whether s has only digits, after a sign.
func isNumber(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return s != "" && !slices.ContainsFunc([]byte(s), func(c byte) bool {
		return c < '0' ||
			c > '9'
	})
}
