package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/ingest/texts"
)

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasAvailableSubCommands() {
		return UnknownCommand(cmd, args[0])
	}
	return fmt.Errorf("%q: `%s` takes no arguments", args[0], cmd.CommandPath())
}

// OneArg requires one argument; name is for the error.
func OneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("no %s is named: `%s`", name, cmd.UseLine())
		case len(args) > 1:
			return fmt.Errorf("%q: `%s` takes one %s", args[1], cmd.CommandPath(), name)
		}
		return nil
	}
}

// SomeArgs requires at least one argument; name is for the error.
func SomeArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("no %s is named: `%s`", name, cmd.UseLine())
		}
		return nil
	}
}

// The captures that commands read if no other is named, as perf does, and diff's base.
const (
	defaultCapture = "perf.data"
	defaultBase    = "perf.data.old"
)

// DefaultCapture makes commands read perf.data of the working directory if no argument is a capture
// and the file exists.
func DefaultCapture(commands ...*cobra.Command) {
	for _, cmd := range commands {
		body, check := cmd.RunE, cmd.Args
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			return body(cmd, withDefault(cmd, args))
		}
		if check != nil {
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				return check(cmd, withDefault(cmd, args))
			}
		}
	}
}

// ErrNoCapture is the error of a command that needs a capture, in a directory without perf.data.
func ErrNoCapture() error {
	return texts.WithHint(Usagef("no capture is named, and there is no %s here", defaultCapture),
		"`perf record -g COMMAND`, or `symbolize capture --stacks -o FILE -- COMMAND`, records one")
}

func withDefault(cmd *cobra.Command, args []string) []string {
	switch name := cmd.Name(); {
	case !IsFile(defaultCapture):
	case name == "peek" && len(args) == 1:
		return append(slices.Clone(args), defaultCapture)
	case name == "peek":
	case name == "annotate" && len(args) > 0:
		if !slices.ContainsFunc(args, isCapture) { // only functions are named
			return slices.Insert(slices.Clone(args), 0, defaultCapture)
		}
	case len(args) > 0 || name == "fetch" && (cmd.Flags().Changed("list") || cmd.Flags().Changed("build-id")):
	case name == "diff" && !cmd.Flags().Changed("base"):
		if IsFile(defaultBase) {
			return []string{defaultBase, defaultCapture}
		}
	default:
		return []string{defaultCapture}
	}
	return args
}

// isCapture reports whether a word of annotate is the name of a file, or looks like one.
func isCapture(word string) bool {
	return IsFile(word) || strings.Contains(word, "/") || word == "-" ||
		slices.ContainsFunc(captureEndings, func(end string) bool { return strings.HasSuffix(word, end) })
}
