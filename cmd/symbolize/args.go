package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasAvailableSubCommands() {
		return unknownCommand(cmd, args[0])
	}
	return fmt.Errorf("%q: `%s` takes no arguments", args[0], cmd.CommandPath())
}

// oneArg wants one argument, which has this name in the error.
func oneArg(name string) cobra.PositionalArgs {
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

// someArgs wants at least one argument, which has this name in the error.
func someArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("no %s is named: `%s`", name, cmd.UseLine())
		}
		return nil
	}
}
