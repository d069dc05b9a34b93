package resolvecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"symbolize/analyze/demangle"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// perfToProfile is the name of the program that pprof runs for perf.data files:
// `perf_to_profile -i IN -o OUT -f` (google/pprof, internal/driver/fetch.go). This one does its
// work if it is called so.
const perfToProfile = "perf_to_profile"

// CommandLine returns the arguments of a process, with the subcommand of its name.
func CommandLine(args []string) []string {
	if len(args) > 0 && filepath.Base(args[0]) == perfToProfile {
		return append([]string{args[0], perfToProfile}, args[1:]...)
	}
	return args
}

type convertOptions struct {
	cli.InputOptions
	input, output string
	force, jit    bool
}

// NewPerfToProfile makes the command `perf_to_profile`.
func NewPerfToProfile(a *cli.App) *cobra.Command {
	o := &convertOptions{}
	cmd := &cobra.Command{
		Use:    perfToProfile + " -i IN -o OUT [-f]",
		Short:  "Convert a perf.data file as pprof asks for it",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: a.RunE(func(ctx context.Context, _ []string) error {
			if o.input == "" || o.output == "" {
				return cli.Usagef("%s: -i IN and -o OUT are needed", perfToProfile)
			}
			return o.run(ctx, a)
		}),
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.input, "input", "i", "", "read `FILE`")
	fs.StringVarP(&o.output, "output", "o", "", "write `FILE`")
	fs.BoolVarP(&o.force, "force", "f", false, "overwrite it")
	fs.BoolVarP(&o.jit, "jit", "j", false, "without effect here")
	return cmd
}

// run writes the profile into the file that there is, once it is complete: pprof has it open
// already, and would not see another one that is renamed to its place.
func (o *convertOptions) run(ctx context.Context, a *cli.App) error {
	if _, err := os.Stat(o.output); !o.force && !errors.Is(err, fs.ErrNotExist) {
		return texts.WithHint(fmt.Errorf("%s is there already", o.output), "-f overwrites it")
	}
	if err := cli.RefuseOverwrite([]string{o.input}, []string{o.output}); err != nil {
		return err
	}
	if err := o.InputOptions.Validate([]string{o.input}); err != nil {
		return err
	}
	return a.WithProfile(ctx, &o.InputOptions, []string{o.input},
		func(s *cli.Session, p *ingest.Profile) error {
			r := &resolveRun{a: a, o: &resolveOptions{format: cli.Pprof}, s: s,
				demangler: demangle.New(demangle.Simple)}
			var b bytes.Buffer
			if err := r.encode(ctx, &b, p); err != nil {
				return err
			}
			if err := r.summarize(p); err != nil {
				return err
			}
			return cli.WriteInPlace(o.output, func(w io.Writer) error {
				_, err := b.WriteTo(w)
				return err
			})
		})
}
