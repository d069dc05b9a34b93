package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/ingest/texts"
	"symbolize/store/db"
)

// storeStats is the output of `store stats`. Its JSON names are an interface.
type storeStats struct {
	Store       string                  `json:"store"`
	Objects     int                     `json:"objects"`
	Kinds       map[string]int          `json:"kinds"`
	Quality     map[string]int          `json:"quality"`
	Sources     map[string]storedTables `json:"sources"`
	NoLayout    int                     `json:"without_layout"`
	Dirs        int                     `json:"directories"`
	Files       int                     `json:"files"`
	Damaged     int                     `json:"damaged"`
	Size        int64                   `json:"size"`
	Captured    int64                   `json:"captured_size"`
	Variants    int                     `json:"variants"`      // loads of BPF functions
	Shared      int                     `json:"shared_inputs"` // of those, each kept once
	SharedSize  int64                   `json:"shared_size"`
	Disk        int64                   `json:"disk"`
	Generations []uint64                `json:"generations"`
}

type storedTables struct {
	Count     int    `json:"count"`
	Functions uint64 `json:"functions"`
	Named     uint64 `json:"bytes_named"`
	Size      int64  `json:"size"`
}

func newStoreStatsCommand(a *cli.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Print counts of objects, tables and bytes",
		Args:  cli.NoArgs,
		RunE: a.RunE(func(ctx context.Context, _ []string) error {
			return a.WithReader(func(r *db.Reader) error {
				s, err := r.Stats(ctx)
				if err != nil {
					return err
				}
				path, _ := a.StorePath() // WithReader has it
				st := newStoreStats(path, s)
				return a.WriteFacts(format, "store-stats/1", st, st.writeText)
			})
		}),
	}
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	return cmd
}

func newStoreStats(path string, s *db.Stats) *storeStats {
	st := &storeStats{
		Store: path, Objects: s.Objects, Kinds: make(map[string]int),
		Quality: make(map[string]int), Sources: make(map[string]storedTables),
		NoLayout: s.NoLayout, Dirs: s.Dirs, Files: s.PathRows, Damaged: s.Damaged,
		Size: s.Size, Captured: s.RawStored, Disk: s.Disk, Generations: s.Generations,
		Variants: s.Variants, Shared: s.Blobs, SharedSize: s.BlobBytes,
	}
	for k, n := range s.Kinds {
		st.Kinds[k.String()] = n
	}
	for k, n := range s.Quality {
		st.Quality[k.String()] = n
	}
	for k, t := range s.Sources {
		st.Sources[k.String()] = storedTables{t.Count, t.Funcs, t.Named, t.Size}
	}
	return st
}

func (s *storeStats) writeText(w io.Writer) error {
	t := table.New()
	t.Row("store", s.Store)
	t.Row("objects", table.Join(": ", fmt.Sprint(s.Objects), table.Counts(s.Kinds)))
	t.Field("quality", table.Counts(s.Quality))
	for _, kind := range slices.Sorted(maps.Keys(s.Sources)) {
		src := s.Sources[kind]
		t.Row(kind, fmt.Sprintf("%d tables, %d functions, %s of code, %s stored", src.Count,
			src.Functions, table.Bytes(src.Named), table.Bytes(src.Size)))
	}
	if s.NoLayout > 0 {
		t.Row("no layout",
			table.Count(s.NoLayout, "object", "objects")+" of which only debug files are indexed")
	}
	t.Row("files", fmt.Sprintf("%d known in %d directories", s.Files, s.Dirs))
	if s.Captured > 0 {
		t.Row("captured", table.Bytes(s.Captured)+" of inputs that cannot be made again")
	}
	if s.Variants > 0 {
		t.Row("variants",
			fmt.Sprintf("%d loads of BPF functions, %d inputs that they share, %s stored",
				s.Variants, s.Shared, table.Bytes(s.SharedSize)))
	}
	if s.Damaged > 0 {
		t.Row("damaged", fmt.Sprintf("%d values; `symbolize store verify` lists them", s.Damaged))
	}
	t.Row("disk", fmt.Sprintf("%s, generations %s", table.Bytes(s.Disk),
		strings.Trim(fmt.Sprint(s.Generations), "[]")))
	return t.Print(w)
}

func newStoreVerifyCommand(a *cli.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Read everything and check it",
		Long: `verify reads everything: digests of files, invariants of tables, rows of paths.
Damage makes it exit with 1. Conflicts (two files with one build ID and different symbols) and
leftovers of interrupted runs are only reported.`,
		Args: cli.NoArgs,
		RunE: a.RunE(func(ctx context.Context, _ []string) error {
			process.SetLeanGC(a.Env.Getenv)
			return a.WithReader(func(r *db.Reader) error { return runStoreVerify(ctx, a, r, format) })
		}),
	}
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	return cmd
}

// verifyResult is the output of `store verify --format json`. Its names are an interface.
type verifyResult struct {
	Store    string          `json:"store"`
	Sound    bool            `json:"sound"`
	Objects  int             `json:"objects"`
	Tables   int             `json:"tables"`
	Variants int             `json:"variants"`
	Dirs     int             `json:"directories"`
	Bytes    int64           `json:"bytes_read"`
	Problems []verifyProblem `json:"problems"`
	More     int             `json:"more_problems"` // that are not listed
}

type verifyProblem struct {
	Kind    string `json:"kind"` // "damage", "conflict", "dangling" or "orphan"
	BuildID string `json:"build_id,omitempty"`
	Path    string `json:"path,omitempty"`
	Text    string `json:"text"`
}

func newVerifyResult(store string, v *db.VerifyResult) *verifyResult {
	r := &verifyResult{Store: store, Sound: v.Sound(), Objects: v.Objects, Tables: v.Sources,
		Variants: v.Variants, Dirs: v.Dirs, Bytes: v.Bytes, Problems: []verifyProblem{},
		More: v.More}
	for _, p := range v.Problems {
		problem := verifyProblem{Kind: p.Kind.String(), Path: p.Path, Text: p.Text}
		if !p.Object.IsZero() {
			problem.BuildID = p.Object.String()
		}
		r.Problems = append(r.Problems, problem)
	}
	return r
}

func runStoreVerify(ctx context.Context, a *cli.App, r *db.Reader, format string) error {
	v, err := r.Verify(ctx)
	if err != nil {
		return err
	}
	path, _ := a.StorePath() // WithReader has it
	err = a.WriteFacts(format, "store-verify/1", newVerifyResult(path, v), func(w io.Writer) error {
		for _, p := range v.Problems {
			if _, err := fmt.Fprintln(w, texts.OneLine(p.String())); err != nil {
				return err
			}
		}
		if v.More > 0 {
			fmt.Fprintf(w, "… and %d more\n", v.More)
		}
		verdict := "sound"
		if !v.Sound() {
			verdict = "DAMAGED"
		}
		_, err := fmt.Fprintf(w, "%s: %s\n", verdict, table.Join(", ",
			fmt.Sprintf("%d objects, %d tables", v.Objects, v.Sources),
			table.Some(v.Variants, "variant", "variants"),
			fmt.Sprintf("%d directories, %s read", v.Dirs, table.Bytes(v.Bytes))))
		return err
	})
	if err != nil || v.Sound() {
		return err
	}
	return texts.WithHint(errors.New("the store is damaged"),
		"run `symbolize store gc` to drop it, then `symbolize index PATH…`")
}

// digestResult is the output of `store digest --format json`. Its names are an interface.
type digestResult struct {
	Store  string `json:"store"`
	Digest string `json:"digest"` // SHA-256
}

func newStoreDigestCommand(a *cli.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "digest",
		Short: "Print a hash of the contents: equal stores, equal digests",
		Long: `digest prints the SHA-256 of the sorted contents: objects, layouts, sources, tables. Paths and
times do not count, so that machines with the same files have the same digest.`,
		Args: cli.NoArgs,
		RunE: a.RunE(func(ctx context.Context, _ []string) error {
			return a.WithReader(func(r *db.Reader) error {
				sum, err := r.Digest(ctx)
				if err != nil {
					return err
				}
				path, _ := a.StorePath() // WithReader has it
				facts := digestResult{path, fmt.Sprintf("%x", sum)}
				return a.WriteFacts(format, "store-digest/1", facts, func(w io.Writer) error {
					_, err := fmt.Fprintln(w, facts.Digest)
					return err
				})
			})
		}),
	}
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	return cmd
}
