package cli

import (
	"context"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/analyze/bpfmap"
	"symbolize/analyze/demangle"
	"symbolize/analyze/inspect"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/input/container"
	"symbolize/ingest/texts"
	"symbolize/store/db"
)

// Bounds of completion in the shell, so that users neither wait nor read long lists.
const (
	completionTime = 2 * time.Second
	completionMost = 200
)

// noFiles keeps the shell from completing names of files.
const noFiles = cobra.ShellCompDirectiveNoFileComp

// completion makes a completion of words that list finds in bounded time. Nothing is printed, and
// a failure gives no words. Words must begin with the text of the user.
func completion(a *App, whenNone cobra.ShellCompDirective,
	list func(ctx context.Context, args []string, add func(word, about string) bool) error,
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		silent := *a.Env
		silent.Stderr, silent.StderrTerminal = io.Discard, false
		a.Env, a.Quiet = &silent, true
		words := make(map[string]string)
		err := list(ctx, args, func(word, about string) bool {
			word = texts.OneLine(word)
			if strings.HasPrefix(word, text) && !strings.ContainsAny(word, "\t") {
				words[word] = about
			}
			return len(words) < completionMost && ctx.Err() == nil
		})
		if err != nil || len(words) == 0 {
			return nil, whenNone
		}
		var out []string
		for _, word := range slices.Sorted(maps.Keys(words)) {
			if about := words[word]; about != "" {
				word += "\t" + texts.OneLine(about)
			}
			out = append(out, word)
		}
		return out, noFiles
	}
}

// CompletionRequested reports whether the shell runs this command line to complete another one.
func CompletionRequested(args []string) bool {
	return slices.Contains(args, cobra.ShellCompRequestCmd) ||
		slices.Contains(args, cobra.ShellCompNoDescRequestCmd)
}

// CompleteFlags registers the completions of the flags of all commands. cobra keeps them in a
// global table for ever, so this is done only for a completion.
func CompleteFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if words := f.Annotations[CompletionWords]; words != nil {
			completeFlag(cmd, f.Name, cobra.FixedCompletions(words, noFiles))
		}
	})
	for _, sub := range cmd.Commands() {
		CompleteFlags(sub)
	}
}

// completeFlag makes the shell complete a flag.
func completeFlag(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // a flag that this program does not define: a bug of ours
	}
}

// CompleteStoredIDs completes build IDs of the store, with their paths; kernels selects kernels.
func CompleteStoredIDs(a *App, kernels bool) cobra.CompletionFunc {
	return completion(a, noFiles, func(_ context.Context, _ []string,
		add func(string, string) bool) error {
		return a.WithReader(func(r *db.Reader) error {
			for m, err := range r.Objects() {
				if err != nil || m.IsAlias() || kernels && m.Kind != ingest.Kernel {
					continue
				}
				o := inspect.NewStored(m)
				if !add(o.BuildID, strings.TrimSpace(o.Symbol+" "+o.Path)) {
					break
				}
			}
			return nil
		})
	})
}

// eventsOf completes the events of the captures among the arguments.
func eventsOf(a *App) cobra.CompletionFunc {
	return completion(a, noFiles, func(ctx context.Context, args []string,
		add func(string, string) bool) error {
		for _, path := range args {
			c, err := input.Open(ctx, path, input.Options{})
			if err != nil {
				continue // an argument of another kind
			}
			if f := c.PerfData(); f != nil {
				for i := range f.Events {
					add(f.Events[i].Name, "")
				}
			} else if p, err := c.Profile(ctx); err == nil {
				for i := range p.Events {
					add(p.Events[i].Name, p.Events[i].Unit)
				}
			}
			if err := c.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

// functionsOf completes the functions in the samples of the captures at the beginning of the
// arguments, named with the flags in o, and without a capture BPF programs of the store. Of a
// capture that cannot be named in time there are none.
func functionsOf(a *App, o *InputOptions) cobra.CompletionFunc {
	return completion(a, cobra.ShellCompDirectiveDefault, func(ctx context.Context, args []string,
		add func(string, string) bool) error {
		if len(args) == 0 {
			return storedPrograms(a, add)
		}
		return functionsIn(ctx, a, o, args[:CaptureArgs(args)], add)
	})
}

// functionsIn adds the names of the functions in the samples of captures.
func functionsIn(ctx context.Context, a *App, o *InputOptions, paths []string,
	add func(string, string) bool) error {
	if err := o.Validate(paths); err != nil {
		return err
	}
	return a.WithSession(ctx, o, paths, func(s *Session, captures []string) error {
		p, err := s.Load(ctx, captures)
		if err != nil {
			return err
		}
		d := demangle.New(demangle.Simple)
		for i := range p.Names.Functions {
			if !add(d.Name(p.Names.Functions[i].SystemName), "") {
				break
			}
		}
		return nil
	})
}

// mapsOf completes the BPF maps in the files among the arguments: dumps, bundles and objects.
func mapsOf(a *App) cobra.CompletionFunc {
	return completion(a, noFiles, func(ctx context.Context, args []string,
		add func(string, string) bool) error {
		if len(args) == 1 && container.TypeOfPath(args[0]) == container.TypeELF {
			found, err := bpfmap.ReadObject(ctx, args[0], "", a)
			if err != nil {
				return err
			}
			for _, m := range found.Maps {
				add(m.Name, m.Type)
			}
			return nil
		}
		in, err := bpfmap.Open(ctx, args, bpfmap.Source{All: true}, a)
		if err != nil {
			return err
		}
		defer in.Close()
		for _, m := range in.Maps().Maps {
			add(m.Name, m.Type)
		}
		return nil
	})
}

// storedPrograms adds the names of the BPF programs of the store.
func storedPrograms(a *App, add func(string, string) bool) error {
	return a.WithReader(func(r *db.Reader) error {
		for m, err := range r.Objects() {
			if err != nil || m.Kind != ingest.JIT {
				continue
			}
			if o := inspect.NewStored(m); o.Symbol != "" && !add(o.Symbol, o.BuildID) {
				break
			}
		}
		return nil
	})
}

// CompleteFunctions completes functions after the first argument, which is a file.
func CompleteFunctions(a *App, o *InputOptions) cobra.CompletionFunc {
	functions := functionsOf(a, o)
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return functions(cmd, args, text)
	}
}

// CompleteFunctionFirst completes a function as the first argument: functions in the samples of
// perf.data in the current directory, and BPF programs of the store. The other arguments are files.
func CompleteFunctionFirst(a *App, o *InputOptions) cobra.CompletionFunc {
	programs := completion(a, cobra.ShellCompDirectiveDefault, func(ctx context.Context, _ []string,
		add func(string, string) bool) error {
		const recording = "perf.data" // perf's own default
		err := storedPrograms(a, add)
		if _, statErr := os.Stat(recording); statErr == nil {
			err = functionsIn(ctx, a, o, []string{recording}, add)
		}
		return err
	})
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return programs(cmd, args, text)
	}
}

// CompleteInputs makes the shell complete build IDs, and the flags of commands that read captures.
func CompleteInputs(a *App, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		fs := sub.Flags()
		switch sub.Name() {
		case "lookup":
			completeFlag(sub, "build-id", CompleteStoredIDs(a, false))
		case "filter":
			completeFlag(sub, "kernel", CompleteStoredIDs(a, true))
		case "map":
			completeFlag(sub, "map", mapsOf(a))
			completeFlag(sub, "kernel", CompleteStoredIDs(a, true))
		}
		if fs.Lookup("symfs") == nil || fs.Lookup("event") == nil {
			continue
		}
		completeFlag(sub, "event", eventsOf(a))
		for _, flag := range []string{"focus", "ignore", "hide", "show", "show-from"} {
			if fs.Lookup(flag) != nil {
				completeFlag(sub, flag, functionsOf(a, &InputOptions{}))
			}
		}
	}
}
