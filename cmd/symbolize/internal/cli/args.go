package cli

import (
	"fmt"

	"github.com/spf13/cobra"
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
