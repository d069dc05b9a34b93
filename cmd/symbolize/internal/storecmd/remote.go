package storecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/remote"
)

// remoteOptions are the flags of push and pull: the objects, and the requests for them.
type remoteOptions struct {
	captures []string
	all      bool
	requests int
}

func (o *remoteOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&o.captures, "for", nil, "only the objects that `CAPTURE` needs; may be repeated")
	fs.BoolVar(&o.all, "all", false, "all objects, as without arguments")
	fs.IntVar(&o.requests, "requests", remote.DefaultJobs, "send at most `N` requests at a time")
	cmd.MarkFlagsMutuallyExclusive("for", "all")
}

// bucket checks the arguments, a URL and the names of objects, and opens the bucket.
func (o *remoteOptions) bucket(a *cli.App, args []string) (remote.Bucket, error) {
	if o.all && len(args) > 1 {
		return nil, cli.Usagef("--all and the names of objects exclude each other")
	}
	return a.OpenBucket(args[0])
}

func newStorePushCommand(a *cli.App) *cobra.Command {
	o := &remoteOptions{}
	var verify bool
	cmd := &cobra.Command{
		Use:   "push URL [BUILD-ID|PATH|PATTERN…]",
		Short: "Write symbol tables to a directory or bucket that many machines share",
		Long: `push writes symbol tables to a directory or bucket, from which pull and --remote fetch them on other
machines: of all objects, of named ones (as for rm), or of those that captures need. Existing tables
are neither written again nor changed; --verify replaces damaged ones.

Exit status: 0 done; 1 failed; 2 usage; 3 an object could not be read or written, the others were
written; 130 interrupted.`,
		Example: "  symbolize store push /mnt/symbols\n" +
			"  symbolize store push file:///mnt/symbols --for perf.data",
		Args: cli.SomeArgs("URL"),
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			to, err := o.bucket(a, args)
			if err != nil {
				return err
			}
			want, err := neededObjects(ctx, a, o.captures)
			if err != nil {
				return err
			}
			return a.WithReader(func(r *db.Reader) error {
				return push(ctx, a, r, to, args[1:], want,
					remote.PushOptions{Jobs: o.requests, Verify: verify})
			})
		}),
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&verify, "verify", false, "fetch existing tables, and replace damaged ones")
	return cmd
}

// push writes the objects that words or want select, or all.
func push(ctx context.Context, a *cli.App, r *db.Reader, to remote.Bucket, words []string,
	want func(*store.Manifest) bool, opts remote.PushOptions) error {
	if len(words) > 0 {
		selected, err := selectObjects(ctx, r, words)
		if err != nil {
			return err
		}
		want = func(m *store.Manifest) bool { return selected[m.ID] }
	}
	var objects []*store.Manifest
	chosen := make(map[buildid.ID]bool)
	for m, err := range r.Objects() {
		switch {
		case err != nil:
			a.ReportErrors([]error{err}, 0)
		case want == nil || want(m) || m.LeadsTo(chosen): // aliases come after all objects
			objects = append(objects, m)
			chosen[m.ID] = true
		}
	}
	res, err := remote.Push(ctx, r, objects, to, opts)
	a.ReportErrors(res.Problems, 0)
	text := fmt.Sprintf("%s: %s, %d there before; %s written, %s", to.URL(""),
		table.Count(res.Objects, "object", "objects"), res.Known,
		table.Count(res.Written, "file", "files"), table.Bytes(res.Bytes))
	if opts.Verify {
		text += fmt.Sprintf("; %d of them in place of damaged ones", res.Replaced)
	}
	a.Note(text)
	return err
}

func newStorePullCommand(a *cli.App) *cobra.Command {
	o := &remoteOptions{}
	var opts db.WriterOptions
	cmd := &cobra.Command{
		Use:         "pull URL [BUILD-ID…]",
		Annotations: map[string]string{cli.WritesAnnotation: "store"},
		Short:       "Fetch symbol tables from a directory or bucket into the store",
		Long: `pull fetches symbol tables that push wrote into the store: of all objects, of those with the named
build IDs, or of those that captures need. Tables that the store has are not fetched again. Each is
checked on arrival; damaged and lost ones are reported.

Exit status: 0 done; 1 failed; 2 usage; 3 a table is damaged or missing, the others were stored;
130 interrupted.`,
		Example: "  symbolize store pull /mnt/symbols\n" +
			"  symbolize store pull file:///mnt/symbols --for perf.data",
		Args: cli.SomeArgs("URL"),
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			from, err := o.bucket(a, args)
			if err != nil {
				return err
			}
			ids, err := parseIDs(args[1:])
			if err != nil {
				return err
			}
			if len(o.captures) > 0 {
				if ids, err = idsOf(ctx, a, o.captures, ids); err != nil {
					return err
				}
			}
			return pull(ctx, a, from, ids, o.requests, opts)
		}),
	}
	o.addFlags(cmd)
	cli.AddWriter(cmd.Flags(), &opts)
	return cmd
}

// parseIDs reads build IDs; nil for none.
func parseIDs(words []string) (ids []buildid.ID, err error) {
	for _, w := range words {
		id, err := buildid.Parse(w)
		if err != nil {
			return nil, cli.Usagef("%v", err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// idsOf adds the objects of captures to a list.
func idsOf(ctx context.Context, a *cli.App, captures []string, ids []buildid.ID) (
	[]buildid.ID, error) {
	ids = append([]buildid.ID{}, ids...) // nil is for all
	err := a.WithSession(ctx, &cli.InputOptions{NoLocal: true}, captures,
		func(s *cli.Session, paths []string) error {
			return s.Each(ctx, paths, func(_ *input.Capture, p *ingest.Profile) error {
				ids = append(ids, remote.ObjectsOf(p.Objects)...)
				return nil
			})
		})
	return ids, err
}

// pull fetches the objects of ids into the store, all objects for nil.
func pull(ctx context.Context, a *cli.App, from remote.Bucket, ids []buildid.ID, jobs int,
	opts db.WriterOptions) error {
	path, err := a.StorePath()
	if err != nil {
		return err
	}
	opts.Waiting = func(e *store.LockedError) { a.Note(e.Waiting()) }
	res, err := remote.PullStore(ctx, from, ids, path, jobs, opts)
	a.ReportErrors(res.Problems, 0)
	a.Note(from.URL("") + ": " + cli.PulledText(res))
	if errors.Is(err, remote.ErrNoTables) {
		return ingest.WithHint(err, "write tables there with `symbolize store push %s`", from.URL(""))
	}
	return cli.StoreError(err)
}
