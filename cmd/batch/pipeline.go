package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"symbolize/analyze"
	"symbolize/analyze/batch"
	"symbolize/analyze/report"
	"symbolize/ingest"
	"symbolize/ingest/files"
)

// Night is what a pipeline works on. Runners move it to workers as JSON.
type Night struct {
	Captures []string // all, sorted: paths that each worker can read
	Store    string   // directory, on each worker
	Out      string   // directory of the profiles, shared by the workers
	Parts    int
	By       []string
	Pattern  string
	Formats  []string // extensions of the files
}

func init() {
	register.DoFn5x1[context.Context, string, func(int, []byte), func(string, []byte),
		func(int, string), error](&collectFn{})
	register.DoFn4x1[context.Context, int, func(*[]byte) bool, func([]byte), error](&nameFn{})
	register.DoFn5x1[context.Context, string, func(*[]byte) bool, func(*[]byte) bool, func(string),
		error](&mergeFn{})
	register.DoFn2x1[int, func(*string) bool, error](&listFn{})
	register.Emitter2[int, []byte]()
	register.Emitter2[int, string]()
	register.Emitter2[string, []byte]()
	register.Emitter1[[]byte]()
	register.Emitter1[string]()
	register.Iter1[[]byte]()
	register.Iter1[string]()
}

// build adds the batch to a pipeline, and returns the paths of its profiles. Elements are paths of
// captures, pieces of collected captures, and files of names; each is the content of a file of
// analyze/batch, so that workers exchange what tasks of other engines write.
func build(s beam.Scope, n *Night) beam.PCollection {
	paths := beam.Reshuffle(s, beam.CreateList(s, n.Captures))
	pieces, stacks, failed := beam.ParDo3(s.Scope("collect"), &collectFn{Night: *n}, paths)
	beam.ParDo0(s.Scope("list"), &listFn{Out: n.Out}, beam.GroupByKey(s, failed))
	names := beam.ParDo(s.Scope("name"), &nameFn{Night: *n}, beam.GroupByKey(s, pieces))
	return beam.ParDo(s.Scope("merge"), &mergeFn{Night: *n}, beam.GroupByKey(s, stacks),
		beam.SideInput{Input: names})
}

// session are the options of each capture.
func (n *Night) session() analyze.Options {
	return analyze.Options{Store: n.Store, Limits: analyze.Limits{Workers: 1}}
}

func (n *Night) grouping() (batch.Grouping, ingest.Keep, error) {
	g := batch.Grouping{Keys: n.By, Pattern: n.Pattern}
	var keep ingest.Keep
	err := g.Labels(&keep)
	return g, keep, err
}

// collectFn collects one capture.
type collectFn struct{ Night Night }

// failures counts captures that could not be read.
var failures = beam.NewCounter("symbolize", failedCounter)

const failedCounter = "captures_failed"

// ProcessElement emits a piece for each part that the capture has locations of, and its stacks by
// group. For a capture that cannot be read it emits a line of FailedList, else an empty one, and
// the others are done.
func (f *collectFn) ProcessElement(ctx context.Context, capture string,
	piece func(int, []byte), stacks func(string, []byte), failed func(int, string)) error {
	line := ""
	defer func() { failed(0, line) }()
	dir, err := os.MkdirTemp("", "symbolize-batch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	by, keep, err := f.Night.grouping()
	if err != nil {
		return err
	}
	c := &batch.Collector{Session: f.Night.session(), Dir: dir, Parts: f.Night.Parts, Workers: 1,
		Hooks: &batch.Hooks{
			OnFailed: func(capture string, err error) {
				log.Errorf(ctx, "%s: %v", capture, err)
				failures.Inc(ctx, 1)
				line = strings.Map(oneLine, capture) + "\t" + strings.Map(oneLine, err.Error())
			},
			OnWarn: func(capture string, w ingest.Warning) { log.Warnf(ctx, "%s: %s", capture, w.Text) },
		}}
	c.Session.Keep = keep
	files, st, err := c.Collect(ctx, []string{capture}, f.Night.Captures)
	err = errors.Join(err, st.Err()) // a full disk is the worker's: the runner tries again
	if err != nil || len(files) == 0 {
		return err
	}
	grouped, err := by.Groups(files)
	if err != nil {
		return err
	}
	for part := range f.Night.Parts {
		b, err := cut(files[0], part, dir)
		if err != nil {
			return err
		}
		piece(part, b)
	}
	b, err := cut(files[0], batch.Stacks, dir)
	if err != nil {
		return err
	}
	stacks(strings.Join(grouped.Groups[0].Values, "\x00"), b)
	return nil
}

// oneLine maps the characters that end fields and lines.
func oneLine(r rune) rune {
	if r == '\t' || r == '\n' || r == '\r' {
		return ' '
	}
	return r
}

// FailedList is the file below the output that lists the captures which could not be read: lines of
// path and reason with a tab between them, sorted. It is empty if there are none.
const FailedList = "failed.tsv"

// listFn writes FailedList.
type listFn struct{ Out string }

// ProcessElement writes the lines that are not empty.
func (f *listFn) ProcessElement(_ int, lines func(*string) bool) error {
	var list []string
	var line string
	for lines(&line) {
		if line != "" {
			list = append(list, line+"\n")
		}
	}
	slices.Sort(list)
	if err := os.MkdirAll(f.Out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(f.Out, FailedList)
	out, err := files.Create(path, 0o644)
	if err != nil {
		return err
	}
	_, err = out.WriteString(strings.Join(slices.Compact(list), ""))
	if err == nil {
		err = out.Publish(path)
	}
	return errors.Join(err, out.Discard())
}

// cut returns the content of a piece.
func cut(collected string, part int, dir string) ([]byte, error) {
	path := filepath.Join(dir, fmt.Sprint("piece", part))
	if err := batch.Cut(collected, part, path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// nameFn names one part.
type nameFn struct{ Night Night }

// ProcessElement emits the file of names of a part, over all captures.
func (f *nameFn) ProcessElement(ctx context.Context, part int, pieces func(*[]byte) bool,
	names func([]byte)) error {
	dir, err := os.MkdirTemp("", "symbolize-batch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	collected, err := spill(dir, "piece", pieces)
	if err != nil {
		return err
	}
	s, err := analyze.Open(ctx, f.Night.session())
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "names")
	st, err := batch.Name(ctx, s, part, collected, path, 0)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	log.Infof(ctx, "part %d: %d locations in %d objects, %d tables opened", part, st.Locations,
		st.Objects, st.Tables)
	b, err := os.ReadFile(path)
	if err == nil {
		names(b)
	}
	return err
}

// spill writes elements to files.
func spill(dir, name string, next func(*[]byte) bool) ([]string, error) {
	var paths []string
	var b []byte
	for next(&b) {
		path := filepath.Join(dir, fmt.Sprint(name, len(paths)))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// mergeFn makes the profiles of one group.
type mergeFn struct{ Night Night }

// ProcessElement writes the profiles of a group, and emits their paths.
func (f *mergeFn) ProcessElement(ctx context.Context, _ string, stacks, names func(*[]byte) bool,
	written func(string)) error {
	dir, err := os.MkdirTemp("", "symbolize-batch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	collected, err1 := spill(dir, "stacks", stacks)
	parts, err2 := spill(dir, "names", names)
	by, _, err3 := f.Night.grouping()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	grouped, err := by.Groups(collected)
	if err != nil {
		return err
	}
	answers, err := batch.OpenAnswers(parts)
	if err != nil {
		return err
	}
	for _, g := range grouped.Groups {
		w, err := g.Write(ctx, answers, batch.Output{Dir: f.Night.Out, Formats: f.Night.Formats,
			Demangler: func() *report.Demangler { return report.NewDemangler(report.Simple) }})
		if err != nil {
			return errors.Join(err, answers.Close())
		}
		for _, file := range w.Files {
			written(filepath.Join(f.Night.Out, file.Path))
		}
	}
	return answers.Close()
}
