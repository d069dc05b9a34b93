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

// The groups of flags. Those of sharedGroups are listed by `symbolize help filters` in place of
// each command's help text, GroupTools after the command's other flags.
const (
	GroupFilters  = "filters"
	GroupSymbols  = "symbols"
	GroupStackMap = "stack maps"
	GroupLimits   = "limits"
	GroupTools    = "as of addr2line and llvm-symbolizer"
)

// sharedGroups are the groups of flags that many commands have, with their titles.
var sharedGroups = []struct{ group, title string }{
	{GroupFilters, "Filters: which samples and frames count"},
	{GroupSymbols, "Symbols: where names come from, before the store"},
	{GroupStackMap, "Stack maps: files that belong to a dump, and its layout"},
	{GroupLimits, "Limits, and results for other programs"},
}

// TopicFilters is the topic of `symbolize help` that lists the flags of sharedGroups.
const TopicFilters = "filters"

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

// groupedFlags returns the visible flags of fs by group, "" for flags without one.
func groupedFlags(fs *pflag.FlagSet) map[string]*pflag.FlagSet {
	sets := make(map[string]*pflag.FlagSet)
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			addToGroup(sets, f, fs.SortFlags)
		}
	})
	return sets
}

func addToGroup(sets map[string]*pflag.FlagSet, f *pflag.Flag, sorted bool) {
	g := GroupOf(f)
	if sets[g] == nil {
		sets[g] = pflag.NewFlagSet(g, pflag.ContinueOnError)
		sets[g].SortFlags = sorted
	}
	if sets[g].Lookup(f.Name) == nil {
		sets[g].AddFlag(f)
	}
}

// SharedFlags returns the text of `symbolize help filters`: the flags of sharedGroups of all
// commands below root, in lines of width columns.
func SharedFlags(root *cobra.Command, width int) string {
	sets := make(map[string]*pflag.FlagSet)
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if GroupOf(f) != "" && !f.Hidden {
				addToGroup(sets, f, false)
			}
		})
	}
	var b strings.Builder
	for _, g := range sharedGroups {
		if sets[g.group] != nil {
			writeFlags(&b, g.title, sets[g.group], width)
		}
	}
	return strings.TrimLeft(b.String(), "\n") + "\n"
}

// writeOwn writes the flags of a command, and the names of the groups of its shared flags.
func writeOwn(b *strings.Builder, cmd *cobra.Command, width int) {
	sets := groupedFlags(cmd.LocalFlags())
	writeFlags(b, "Flags", sets[""], width)
	writeFlags(b, "Flags "+GroupTools, sets[GroupTools], width)
	var groups []string
	for _, g := range sharedGroups {
		if sets[g.group] != nil {
			groups = append(groups, g.group)
		}
	}
	if len(groups) > 0 {
		fmt.Fprintf(b, "\n\nFlags for %s: %s help %s", strings.Join(groups, ", "), cmd.Root().Name(),
			TopicFilters)
	}
}

// OwnFlags returns the flags of a command except sharedGroups, in lines of width columns.
func OwnFlags(cmd *cobra.Command, width int) string {
	var b strings.Builder
	writeOwn(&b, cmd, width)
	return strings.TrimLeft(b.String(), "\n") + "\n"
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
	writeOwn(&b, cmd, width)
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
	if fs == nil {
		return
	}
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

// NewHelpCommand makes `help`, which has the topic TopicFilters beside the commands and refuses
// other words. Lines have width() columns.
func NewHelpCommand(width func() int) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command|" + TopicFilters + "]",
		Short: "Print the help text of a command, or the flags that commands share",
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
			if slices.Equal(args, []string{TopicFilters}) {
				_, err := io.WriteString(cmd.OutOrStdout(), SharedFlags(cmd.Root(), width()))
				return err
			}
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
