package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/suggest"
	"symbolize/ingest/texts"
)

// SuggestionDistance is how many letters a mistyped command or flag may be off.
const SuggestionDistance = 2

// UnknownCommand is the error of a word that is no subcommand of cmd, with the nearest one that
// is, or with ours for a task that other tools have a command for.
func UnknownCommand(cmd *cobra.Command, word string) error {
	err := fmt.Errorf("unknown command %q for %q", word, cmd.CommandPath())
	ours := suggest.Commands[word]
	if !cmd.HasParent() && ours != "" {
		return texts.WithHint(err, "`%s %s` does that", cmd.CommandPath(), ours)
	}
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return texts.WithHint(err, "did you mean `%s %s`?", cmd.CommandPath(), near[0])
	}
	if !cmd.HasParent() {
		if sub, rest, e := cmd.Find([]string{"store", word}); e == nil && len(rest) == 0 {
			return texts.WithHint(err, "did you mean `%s`?", sub.CommandPath())
		}
	}
	if !cmd.HasAvailableSubCommands() {
		return texts.WithHint(err, "`%s --help` describes the command line", cmd.CommandPath())
	}
	return texts.WithHint(err, "`%s --help` lists the commands", cmd.CommandPath())
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
		err := invalidValue(invalid)
		if hint := suggest.Value(cmd.Name(), invalid.GetFlag().Name, invalid.GetValue()); hint != "" {
			return texts.WithHint(err, "%s", hint)
		}
		return err
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: not the form of a flag", syntax.GetSpecifiedFlag())
	}
	return err
}

// unknownFlag is the error of a flag that cmd does not have.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	if word := cmd.Flags().Arg(0); !cmd.HasParent() && word != "" {
		return UnknownCommand(cmd, word) // with flags of its own
	}
	word, group := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
	err, long := fmt.Errorf("unknown flag: --%s", word), word
	if group != "" {
		err = fmt.Errorf("unknown flag: -%s", word)
		if len(group) > 1 { // as pprof writes them, with one dash
			err = fmt.Errorf("unknown flag: -%s in -%s", word, group)
			long, _, _ = strings.Cut(group, "=")
		}
	}
	if hint := suggest.Flag(cmd.Name(), long); hint != "" {
		return texts.WithHint(err, "%s", hint)
	}
	if f := nearFlag(cmd, long); f != "" {
		return texts.WithHint(err, "did you mean `--%s`?", f)
	}
	if hint := suggest.Flag(cmd.Name(), word); hint != "" {
		return texts.WithHint(err, "%s", hint)
	}
	return err
}

// nearFlag returns the visible flag of cmd that word is a beginning of, or a misspelling, "" for
// none. The nearest one wins, of equally near ones the first by name.
func nearFlag(cmd *cobra.Command, word string) (near string) {
	best := SuggestionDistance + 1
	visit := func(f *pflag.Flag) {
		d := suggest.Distance(strings.ReplaceAll(word, "_", "-"), f.Name)
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

// maxSome is how many names a message lists.
const maxSome = 3

// Some returns a text with the first names of a list, and how many more there are.
func Some(names []string) string {
	if n := len(names) - maxSome; n > 1 {
		return strings.Join(names[:maxSome], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
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
