package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The groups of flags that the help text lists apart from a command's other flags.
const (
	GroupStackMap = "for stack maps"
	GroupTools    = "as of addr2line and llvm-symbolizer"
)

// flagGroup is the annotation of flags that names their group.
const flagGroup = "symbolize_flag_group"

// AddGroup adds the flags that define defines to fs, in a group of the help text.
func AddGroup(fs *pflag.FlagSet, group string, define func(*pflag.FlagSet)) {
	defined := pflag.NewFlagSet(group, pflag.ContinueOnError)
	defined.SortFlags = false
	define(defined)
	defined.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = make(map[string][]string)
		}
		f.Annotations[flagGroup] = []string{group}
		fs.AddFlag(f)
	})
}

// GroupOf returns the group of a flag, "" for none.
func GroupOf(f *pflag.Flag) string {
	if g := f.Annotations[flagGroup]; len(g) > 0 {
		return g[0]
	}
	return ""
}

// groupedFlags returns the visible flags of fs by group, in the order of their first flags and
// those without a group first.
func groupedFlags(fs *pflag.FlagSet) (groups []string, sets map[string]*pflag.FlagSet) {
	groups, sets = []string{""}, map[string]*pflag.FlagSet{"": newFlagSet(fs)}
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		g := GroupOf(f)
		if sets[g] == nil {
			groups, sets[g] = append(groups, g), newFlagSet(fs)
		}
		sets[g].AddFlag(f)
	})
	return groups, sets
}

func newFlagSet(like *pflag.FlagSet) *pflag.FlagSet {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SortFlags = like.SortFlags
	return fs
}

// PrintUsage prints how a command is called, as cobra does, with the groups of flags apart and
// lines of width columns; 0 leaves them as long as they are.
func PrintUsage(cmd *cobra.Command, width int) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "\n  %s", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n  %s [command]", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\n\nExamples:\n%s", cmd.Example)
	}
	writeCommands(&b, cmd)
	groups, sets := groupedFlags(cmd.LocalFlags())
	for _, g := range groups {
		writeFlags(&b, strings.TrimSpace("Flags "+g), sets[g], width)
	}
	writeFlags(&b, "Global Flags", cmd.InheritedFlags(), width)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\nUse \"%s [command] --help\" for more information about a command.",
			cmd.CommandPath())
	}
	b.WriteByte('\n')
	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

func writeFlags(b *strings.Builder, title string, fs *pflag.FlagSet, width int) {
	if text := strings.TrimRight(fs.FlagUsagesWrapped(width), " \n"); text != "" {
		fmt.Fprintf(b, "\n\n%s:\n%s", title, text)
	}
}

// writeCommands lists the subcommands by group.
func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	groups := slices.Clone(cmd.Groups())
	rest := &cobra.Group{Title: "Available Commands:"}
	if len(groups) > 0 {
		rest.Title = "Additional Commands:"
	}
	for _, g := range append(groups, rest) {
		title := "\n\n" + g.Title
		for _, sub := range cmd.Commands() {
			if sub.GroupID == g.ID && (sub.IsAvailableCommand() || sub.Name() == "help") {
				fmt.Fprintf(b, "%s\n  %-*s %s", title, sub.NamePadding(), sub.Name(), sub.Short)
				title = ""
			}
		}
	}
}

// NewHelpCommand makes `help`, which refuses the names of commands that are none.
func NewHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		Args:  cobra.ArbitraryArgs,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (
			names []string, _ cobra.ShellCompDirective) {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, sub := range found.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return UnknownCommand(found, rest[0])
			}
			found.InitDefaultHelpFlag()
			found.InitDefaultVersionFlag()
			found.SetContext(context.WithoutCancel(cmd.Context()))
			return found.Help()
		},
	}
}
