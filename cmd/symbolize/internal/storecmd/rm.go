package storecmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"symbolize/analyze/inspect"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/store"
	"symbolize/store/db"
)

func newStoreRmCommand(a *cli.App) *cobra.Command {
	var o dropOptions
	cmd := &cobra.Command{
		Use:         "rm BUILD-ID|PATH|PATTERN…",
		Annotations: map[string]string{cli.WritesAnnotation: "store"},
		Short:       "Remove objects from the store",
		Long: `rm removes objects by build ID or its beginning, by file, by directory with everything below it, or
by a pattern for paths. A name or pattern without a slash matches file names in all directories and
the kernel's names of BPF functions.

Captured inputs and kernels are
removed like other objects and cannot be made again. The next index reads removed files again.`,
		Example: `  symbolize store rm --dry-run '/home/me/build/*'
  symbolize store rm 93ac61ec`,
		Args: cli.SomeArgs("build ID, path or pattern"),
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			var remove map[buildid.ID]bool
			err := a.WithReader(func(r *db.Reader) (err error) {
				remove, err = selectObjects(ctx, r, args)
				return err
			})
			if err != nil {
				return err
			}
			return drop(ctx, a, &o, db.GCOptions{Remove: remove})
		}),
	}
	cmd.Flags().SortFlags = false
	o.addFlags(cmd)
	return cmd
}

// selectObjects returns the objects of the store that words name. Damaged values name none.
func selectObjects(ctx context.Context, r *db.Reader, words []string) (map[buildid.ID]bool, error) {
	s, err := inspect.NewSelector(words)
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	have := make(map[buildid.ID]bool)
	for m, err := range r.Objects() {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			have[m.ID] = true
			s.Object(m)
		case !errors.Is(err, store.ErrDamaged):
			return nil, err
		}
	}
	for dir, err := range r.Dirs() {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return nil, err
		}
		for _, row := range dir.Rows {
			if have[row.ID] {
				s.File(dir.Path+"/"+row.Name, row.ID)
			}
		}
	}
	return s.Selected()
}
