package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
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
	o := &pushOptions{}
	cmd := &cobra.Command{
		Use:   "push URL [BUILD-ID|PATH|PATTERN…]",
		Short: "Write symbol tables to a directory or bucket that many machines share",
		Long: `push writes symbol tables to a directory or bucket, from which pull and --remote fetch them on other
machines: of all objects, of named ones (as for rm), or of the objects that captures need. Existing tables
are neither written again nor changed; --verify replaces damaged ones.

push also notes there on which days the store's objects were last indexed or used. --prune 90d then
lists and removes the tables of objects that no machine has pushed or used for 90 days, and does not
push such objects of this store.

Exit status: 0 done; 1 failed; 2 usage; 3 an object could not be read or written, the others were
written; 130 interrupted.`,
		Example: "  symbolize store push /mnt/symbols\n" +
			"  symbolize store push file:///mnt/symbols --for perf.data\n" +
			"  symbolize store push /mnt/symbols --prune 90d --dry-run",
		Args: cli.SomeArgs("URL"),
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if o.dryRun && o.prune == 0 {
				return cli.Usagef("--dry-run is for --prune")
			}
			to, err := o.bucket(a, args)
			if err != nil {
				return err
			}
			want, err := neededObjects(ctx, a, o.captures)
			if err != nil {
				return err
			}
			return a.WithReader(func(r *db.Reader) error { return o.run(ctx, a, r, to, args[1:], want) })
		}),
	}
	o.addFlags(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&o.verify, "verify", false, "fetch existing tables, and replace damaged ones")
	fs.Var(&o.prune, "prune", "then remove the tables of objects that no machine has pushed or used "+
		"for `TIME`, such as 90d")
	fs.BoolVar(&o.dryRun, "dry-run", false, "list what --prune would remove, and write nothing")
	return cmd
}

// pushOptions are the flags of push.
type pushOptions struct {
	remoteOptions
	verify bool
	prune  cli.Days
	dryRun bool
}

// run writes the objects that words or want select, or all, and prunes.
func (o *pushOptions) run(ctx context.Context, a *cli.App, r *db.Reader, to remote.Bucket,
	words []string, want func(*store.Manifest) bool) error {
	if len(words) > 0 {
		selected, err := selectObjects(ctx, r, words)
		if err != nil {
			return err
		}
		want = func(m *store.Manifest) bool { return selected[m.ID] }
	}
	var all []*store.Manifest
	for m, err := range r.Objects() {
		if err != nil {
			a.ReportErrors([]error{err}, 0)
			continue
		}
		all = append(all, m)
	}
	used, err := o.lastUsed(a, r, all)
	lost := false
	if err == nil && !o.dryRun {
		lost, err = o.push(ctx, a, r, to, o.choose(all, want, used), used)
	}
	if err != nil || o.prune == 0 {
		return err
	}
	if lost {
		a.Note(to.URL("") + ": nothing is pruned in this run: days of use are lost, which other machines note again")
		return nil
	}
	return o.pruneBucket(ctx, a, to, used)
}

// lastUsed returns the last days of use of objects. Those without one get today, as from gc.
func (o *pushOptions) lastUsed(a *cli.App, r *db.Reader, objects []*store.Manifest) (
	map[string]time.Time, error) {
	used, err := r.LastUsed()
	if err != nil {
		return nil, err
	}
	var undated []buildid.ID
	for _, m := range objects {
		if name := store.ObjectName(m.ID); !m.IsAlias() && used[name].IsZero() {
			used[name] = time.Now()
			undated = append(undated, m.ID)
		}
	}
	path, err := a.StorePath()
	if err == nil && !o.dryRun {
		if err := db.MarkUsed(path, undated); err != nil {
			a.Warn(err.Error(), "")
		}
	}
	return used, err
}

// choose returns the objects that want selects and --prune would not remove.
func (o *pushOptions) choose(all []*store.Manifest, want func(*store.Manifest) bool,
	used map[string]time.Time) (objects []*store.Manifest) {
	chosen := make(map[buildid.ID]bool)
	for _, m := range all { // aliases come after all objects
		switch {
		case m.IsAlias():
			if !m.LeadsTo(chosen) {
				continue
			}
		case o.prune > 0 && used[store.ObjectName(m.ID)].Before(o.prune.Since()),
			want != nil && !want(m):
			continue
		}
		objects = append(objects, m)
		chosen[m.ID] = true
	}
	return objects
}

// push writes objects. usesLost: see remote.PushResult.
func (o *pushOptions) push(ctx context.Context, a *cli.App, r *db.Reader, to remote.Bucket,
	objects []*store.Manifest, used map[string]time.Time) (usesLost bool, err error) {
	bar := a.StartProgress("push", "objects")
	res, err := remote.Push(ctx, r, objects, to, remote.PushOptions{Jobs: o.requests,
		Verify: o.verify, Used: used, Progress: bar.Show})
	bar.Stop()
	a.ReportErrors(res.Problems, 0)
	text := fmt.Sprintf("%s: %s, %d there before; %s written, %s", to.URL(""),
		table.Count(res.Objects, "object", "objects"), res.Known,
		table.Count(res.Written, "file", "files"), table.Bytes(res.Bytes))
	if o.verify {
		text += fmt.Sprintf("; %d of them in place of damaged ones", res.Replaced)
	}
	a.Note(text)
	return res.UsesLost, err
}

// pruneBucket removes what no machine uses, and lists it.
func (o *pushOptions) pruneBucket(ctx context.Context, a *cli.App, in remote.Bucket,
	used map[string]time.Time) error {
	res, err := remote.Prune(ctx, in, remote.PruneOptions{Before: o.prune.Since(), Now: time.Now(), Used: used,
		DryRun: o.dryRun, Jobs: o.requests})
	a.ReportErrors(res.Problems, 0)
	removed := "removed"
	if o.dryRun {
		removed = "nothing was changed; would be removed"
	}
	a.Note(fmt.Sprintf("%s: %s: %s unused for %v, %s, %s; %d stay", in.URL(""), removed,
		table.Count(len(res.Gone), "object", "objects"), &o.prune,
		table.Count(res.Removed, "file", "files"), table.Bytes(res.Bytes), res.Objects))
	var gone []goneObject
	for _, g := range res.Gone {
		gone = append(gone, newGone(g))
	}
	return errors.Join(err, a.WriteFacts(cli.Text, "", nil, func(w io.Writer) error {
		return writeGone(w, gone)
	}))
}

func newStorePullCommand(a *cli.App) *cobra.Command {
	o := &remoteOptions{}
	var opts db.WriterOptions
	cmd := &cobra.Command{
		Use:         "pull URL [BUILD-ID…]",
		Annotations: map[string]string{cli.WritesAnnotation: "store"},
		Short:       "Fetch symbol tables from a directory or bucket into the store",
		Long: `pull fetches symbol tables that push wrote into the store: of all objects, of those with the named
build IDs, or of the objects that captures need. Tables that the store has are not fetched again. Each is
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
	bar := a.StartProgress("pull", "objects")
	res, err := remote.PullStore(ctx, from, ids, path,
		remote.PullOptions{Jobs: jobs, Progress: bar.Show}, opts)
	bar.Stop()
	a.ReportErrors(res.Problems, 0)
	a.Note(from.URL("") + ": " + cli.PulledText(res))
	if errors.Is(err, remote.ErrNoTables) {
		return texts.WithHint(err, "write tables there with `symbolize store push %s`", from.URL(""))
	}
	return cli.StoreError(err)
}
