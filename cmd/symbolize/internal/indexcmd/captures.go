package indexcmd

import (
	"context"
	"errors"
	"fmt"

	"symbolize/analyze"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/input"
	"symbolize/store"
	"symbolize/store/bpfprog"
	"symbolize/store/indexer"
)

// captureResult counts the functions that `index` kept of captures.
type captureResult struct {
	Captures  int            `json:"captures"`
	Programs  int            `json:"programs"`
	Functions int            `json:"functions"`
	Images    int            `json:"images"` // functions with captured code
	Lined     int            `json:"with_lines"`
	Missing   map[string]int `json:"missing"` // programs without code, by why
}

// openBundles opens the bundles among captures and adds their content to the options of an index
// run. opened has them, to be closed. Captures that cannot be opened are reported where the
// programs of captures are read.
func openBundles(ctx context.Context, paths []string, opts *indexer.Options) (
	problems []indexer.Problem, opened *analyze.Inputs) {
	var list []*input.Capture
	opened = &analyze.Inputs{}
	bundles, _ := analyze.SplitBundles(paths)
	for _, path := range bundles {
		if c, err := opened.Get(ctx, path); err == nil {
			list = append(list, c)
		}
	}
	opts.Hosts, problems = indexer.HostsOf(list)
	var more []indexer.Problem
	opts.Bundled, more = indexer.BundledFiles(list)
	return append(problems, more...), opened
}

// indexCaptures keeps the BPF programs of captures, which no file has. It calls open for the store
// if there are any. Unreadable captures become problems; captures in opened are not opened again.
func indexCaptures(ctx context.Context, paths []string, opened *analyze.Inputs,
	open func() (store.Sink, error), sum *indexer.Summary, types bool) (*captureResult, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	res := &captureResult{Missing: make(map[string]int)}
	for _, path := range paths {
		stats, err := indexCapture(ctx, path, opened, open, types)
		var problem indexer.Problem
		if errors.As(err, &problem) {
			sum.Problems = append(sum.Problems, problem)
			continue
		}
		if err != nil {
			return res, err
		}
		res.Captures++
		if stats == nil {
			continue
		}
		res.Programs += stats.Programs
		res.Functions += stats.Functions
		res.Images += stats.Images
		res.Lined += stats.Lined
		for why, n := range stats.Missing {
			res.Missing[why] += n
		}
		for _, err := range stats.Problems {
			sum.Problems = append(sum.Problems, indexer.Problem{Path: path, Err: err, Named: true})
		}
	}
	return res, nil
}

// indexCapture keeps the programs of one capture. The error is a Problem where the
// capture is at fault.
func indexCapture(ctx context.Context, path string, opened *analyze.Inputs,
	open func() (store.Sink, error), types bool) (*bpfprog.Stats, error) {
	c, err := opened.Take(ctx, path)
	if err != nil {
		return nil, indexer.Problem{Path: path, Err: err, Hint: cli.Hint(err), Named: true}
	}
	defer c.Close()
	programs, err := c.Programs()
	if err != nil && len(programs) == 0 {
		return nil, indexer.Problem{Path: path, Err: err, Hint: cli.Hint(err), Named: true}
	}
	if len(programs) == 0 {
		return nil, ctx.Err()
	}
	sink, openErr := open()
	if openErr != nil {
		return nil, openErr
	}
	info := bpfprog.CaptureInfoOf(path, c)
	if types {
		info.Maps = bpfprog.MapsOf(c)
	}
	stats, addErr := bpfprog.Add(ctx, sink, info, programs)
	if err != nil { // some of them were whole
		stats.Problems = append(stats.Problems, err)
	}
	return stats, addErr
}

// text formats the counts as one line.
func (r *captureResult) text() string {
	if r.Captures == 0 || r.Programs == 0 && len(r.Missing) == 0 {
		return ""
	}
	return table.Join(", ", fmt.Sprintf("%s of %s in %s",
		table.Count(r.Functions, "function", "functions"),
		table.Count(r.Programs, "BPF program", "BPF programs"),
		table.Count(r.Captures, "capture", "captures")),
		table.Some(r.Images, "image", "images"),
		table.Some(r.Lined, "with lines", "with lines"),
		table.Some(sumOf(r.Missing), "program without an image", "programs without an image")+
			parens(table.Counts(r.Missing)))
}

func sumOf(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// parens returns " (text)", "" for no text.
func parens(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// openOnce returns a function that opens at its first call.
func openOnce(open func() (store.Sink, error)) func() (store.Sink, error) {
	var sink store.Sink
	var err error
	opened := false
	return func() (store.Sink, error) {
		if !opened {
			sink, err = open()
			opened = true
		}
		return sink, err
	}
}

// addBCC merges the files in the directories of --bcc-dir, and counts their programs. open is not
// called if there are no directories.
func addBCC(ctx context.Context, a *cli.App, dirs []string, open func() (store.Sink, error),
	sum *indexer.Summary) error {
	for _, dir := range dirs {
		sink, err := open()
		if err != nil {
			return err
		}
		stats, err := bpfprog.AddBCC(ctx, sink, dir)
		if err != nil {
			return err
		}
		sum.Programs += uint64(stats.Programs)
		for _, w := range analyze.BCCWarnings(dir, stats) {
			a.Warn(w.Text, w.Hint)
		}
	}
	return nil
}
