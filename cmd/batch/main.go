// Command batch runs `symbolize batch` as a pipeline of Apache Beam. README.md has how
// it is started on runners.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"symbolize/analyze"
	"symbolize/analyze/batch"
	"symbolize/store/db"
)

var (
	storeDir = flag.String("store", "", "the store's directory, on each worker")
	out      = flag.String("out", "", "directory of the profiles, shared by the workers")
	parts    = flag.Int("parts", 8, "number of parts that the locations are cut into")
	by       = flag.String("by", "", "keys of the groups, with commas between them")
	pattern  = flag.String("path", "", "pattern of keys in the captures' paths")
	chains   = flag.String("chains", "recorded", "stacks of frame pointers: recorded or proven")
	formats  = flag.String("format", "pprof", "pprof, folded, or both with a comma between them")
)

func main() {
	flag.Parse()
	beam.Init() // does not return on workers
	failed, err := run(context.Background(), flag.Args())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "batch: error:", err)
		os.Exit(1)
	case failed > 0: // as symbolize does
		fmt.Fprintf(os.Stderr, "batch: warning: %d captures could not be read: %s lists them\n", failed,
			filepath.Join(*out, FailedList))
		os.Exit(3)
	}
}

// run runs the pipeline, and returns how many captures could not be read, as far as the runner has
// counters.
func run(ctx context.Context, paths []string) (failed int64, err error) {
	if *out == "" || len(paths) == 0 || *parts < 1 {
		return 0, errors.New("usage: batch --out DIR [--store DIR] [--by KEYS] [--path PATTERN] " +
			"[--runner RUNNER] CAPTURE|DIR…")
	}
	n := &Night{Store: *storeDir, Out: *out, Parts: *parts, Pattern: *pattern}
	if n.Chains.Proven = *chains == "proven"; !n.Chains.Proven && *chains != "recorded" {
		return 0, fmt.Errorf("--chains %q: it is recorded or proven", *chains)
	}
	if *by != "" {
		n.By = strings.Split(*by, ",")
	}
	for _, f := range strings.Split(*formats, ",") {
		extension, ok := map[string]string{"pprof": batch.FormatPprof, "folded": batch.FormatFolded,
			"parquet": batch.FormatParquet}[f]
		if !ok {
			return 0, fmt.Errorf("--format %q: it is pprof, folded or parquet", f)
		}
		n.Formats = append(n.Formats, extension)
	}
	if _, _, err := n.grouping(); err != nil {
		return 0, err
	}
	if n.Store == "" {
		n.Store = db.DefaultPath(os.Getenv)
	}
	if n.Captures, err = batch.Captures(paths); err != nil {
		return 0, err
	}
	if len(n.Captures) == 0 {
		return 0, errors.New("there is no capture")
	}
	n.Bundles, _ = analyze.SplitBundles(n.Captures)
	p, s := beam.NewPipelineWithRoot()
	build(s, n)
	res, err := beamx.RunWithMetrics(ctx, p)
	if err != nil || res == nil {
		return 0, err
	}
	return failedIn(res), nil
}

// failedIn returns the counter of captures that could not be read.
func failedIn(res beam.PipelineResult) (failed int64) {
	metrics := res.Metrics()
	for _, c := range metrics.AllMetrics().Counters() {
		if c.Name() == failedCounter {
			failed += c.Result()
		}
	}
	return failed
}
