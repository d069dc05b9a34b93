// Command batch runs a night of `symbolize batch` as a pipeline of Apache Beam. README.md has how it
// is started on runners.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"symbolize/analyze/batch"
	"symbolize/store/db"
)

var (
	storeDir = flag.String("store", "", "the store's directory, on each worker")
	out      = flag.String("out", "", "directory of the profiles, shared by the workers")
	parts    = flag.Int("parts", 8, "number of parts that the locations are cut into")
	by       = flag.String("by", "", "keys of the groups, with commas between them")
	pattern  = flag.String("path", "", "pattern of keys in the captures' paths")
	formats  = flag.String("format", "pprof", "pprof, folded, or both with a comma between them")
)

func main() {
	flag.Parse()
	beam.Init() // does not return on workers
	if err := run(context.Background(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "batch: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, paths []string) error {
	if *out == "" || len(paths) == 0 || *parts < 1 {
		return errors.New("usage: batch --out DIR [--store DIR] [--by KEYS] [--path PATTERN] " +
			"[--runner RUNNER] CAPTURE|DIR…")
	}
	n := &Night{Store: *storeDir, Out: *out, Parts: *parts, Pattern: *pattern}
	if *by != "" {
		n.By = strings.Split(*by, ",")
	}
	for _, f := range strings.Split(*formats, ",") {
		extension, ok := map[string]string{"pprof": batch.FormatPprof, "folded": batch.FormatFolded}[f]
		if !ok {
			return fmt.Errorf("--format %q: it is pprof or folded", f)
		}
		n.Formats = append(n.Formats, extension)
	}
	if _, _, err := n.grouping(); err != nil {
		return err
	}
	var err error
	if n.Store == "" {
		n.Store = db.DefaultPath(os.Getenv)
	}
	if n.Captures, err = batch.Captures(paths); err != nil {
		return err
	}
	if len(n.Captures) == 0 {
		return errors.New("there is no capture")
	}
	p, s := beam.NewPipelineWithRoot()
	build(s, n)
	return beamx.Run(ctx, p)
}
