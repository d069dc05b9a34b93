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
	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/files"
)

// Night is what a pipeline works on. Runners move it to workers as JSON.
type Night struct {
	Captures []string // all, sorted: paths that each worker can read
	Bundles  []string // of these, which serve the captures beside them
	Store    string   // directory, on each worker
	Out      string   // directory of the profiles, shared by the workers
	Parts    int
	By       []string
	Pattern  string
	Formats  []string // extensions of the files
	Chains   batch.Chains
}

func init() {
	register.DoFn4x1[context.Context, int, func(string), func(string), error](&collectFn{})
	register.DoFn4x1[context.Context, int, func(*string) bool, func(string), error](&nameFn{})
	register.DoFn3x1[[]byte, func(*string) bool, func(Group), error](&groupFn{})
	register.DoFn4x1[context.Context, Group, func(*string) bool, func(string), error](&mergeFn{})
	register.DoFn2x1[[]byte, func(*string) bool, error](&listFn{})
	register.Emitter1[string]()
	register.Emitter1[Group]()
	register.Iter1[string]()
}

// build adds the batch to a pipeline, and returns the paths of its profiles. Elements are the
// numbers of shards and parts, and paths of files below the output: the files of analyze/batch are
// not moved through the runner, which would encode, copy and decode them at each step.
func build(s beam.Scope, n *Night) beam.PCollection {
	packs, failed := beam.ParDo2(s.Scope("collect"), &collectFn{Night: *n}, numbers(s, n.shards()))
	beam.ParDo0(s.Scope("list"), &listFn{Out: n.Out}, beam.Impulse(s), beam.SideInput{Input: failed})
	names := beam.ParDo(s.Scope("name"), &nameFn{Night: *n}, numbers(s, n.Parts),
		beam.SideInput{Input: packs})
	groups := beam.ParDo(s.Scope("group"), &groupFn{Night: *n}, beam.Impulse(s),
		beam.SideInput{Input: packs})
	return beam.ParDo(s.Scope("merge"), &mergeFn{Night: *n}, beam.Reshuffle(s, groups),
		beam.SideInput{Input: names})
}

// numbers are the numbers of tasks that any workers do.
func numbers(s beam.Scope, n int) beam.PCollection {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return beam.Reshuffle(s, beam.CreateList(s, list))
}

// A shard has at most as many captures as a pack, and there are minShards for workers if a shard
// has smallShard captures then.
const (
	maxShard   = 256
	smallShard = 16
	minShards  = 256
)

// shardSize returns how many captures a shard has.
func (n *Night) shardSize() int {
	return min(maxShard, max(smallShard, (len(n.Captures)+minShards-1)/minShards))
}

func (n *Night) shards() int { return (len(n.Captures) + n.shardSize() - 1) / n.shardSize() }

// work returns a path for files between the steps, which the workers share.
func (n *Night) work(name string) string { return filepath.Join(n.Out, ".beam", name) }

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

// collectFn collects the captures of one shard.
type collectFn struct{ Night Night }

// failures counts captures that could not be read.
var failures = beam.NewCounter("symbolize", failedCounter)

const failedCounter = "captures_failed"

// ProcessElement emits the paths of the shard's packs, and for each capture that cannot be read a
// line of FailedList: the others are done. A shard that is done again reads no capture twice.
func (f *collectFn) ProcessElement(ctx context.Context, shard int, packs, failed func(string)) error {
	n := &f.Night
	captures := n.Captures[shard*n.shardSize() : min(len(n.Captures), (shard+1)*n.shardSize())]
	dirs := make(map[string]bool)
	for _, capture := range captures {
		dirs[filepath.Dir(capture)] = true
	}
	all := slices.Clone(captures)
	for _, b := range n.Bundles {
		if dirs[filepath.Dir(b)] && !slices.Contains(captures, b) {
			all = append(all, b)
		}
	}
	_, keep, err := n.grouping()
	if err != nil {
		return err
	}
	c := &batch.Collector{Session: n.session(), Dir: n.work(fmt.Sprint("shard-", shard)),
		Parts: n.Parts, Workers: 1, Config: fmt.Sprintf("%+v", keep), Hooks: &batch.Hooks{
			OnFailed: func(capture string, err error) {
				log.Errorf(ctx, "%s: %v", capture, err)
				failures.Inc(ctx, 1)
				failed(strings.Map(oneLine, capture) + "\t" + strings.Map(oneLine, err.Error()))
			},
			OnWarn: func(capture string, w ingest.Warning) { log.Warnf(ctx, "%s: %s", capture, w.Text) },
		}}
	c.Session.Keep = keep
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	paths, st, err := c.Collect(ctx, captures, all)
	// A full disk is the worker's: the runner tries again.
	if err := errors.Join(err, st.Err()); err != nil {
		return err
	}
	for _, path := range paths {
		packs(path)
	}
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

// ProcessElement writes all lines.
func (f *listFn) ProcessElement(_ []byte, lines func(*string) bool) error {
	list := sorted(lines)
	if err := os.MkdirAll(f.Out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(f.Out, FailedList)
	out, err := files.Create(path, 0o644)
	if err != nil {
		return err
	}
	for _, line := range list {
		if err == nil {
			_, err = out.WriteString(line + "\n")
		}
	}
	if err == nil {
		err = out.Publish(path)
	}
	return errors.Join(err, out.Discard())
}

// sorted returns different elements, sorted: a runner may do a task twice.
func sorted(next func(*string) bool) (list []string) {
	var element string
	for next(&element) {
		list = append(list, element)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// nameFn names one part.
type nameFn struct{ Night Night }

// ProcessElement emits the path of the file with the names of a part, over all captures.
func (f *nameFn) ProcessElement(ctx context.Context, part int, packs func(*string) bool,
	names func(string)) error {
	s, err := analyze.Open(ctx, f.Night.session())
	if err != nil {
		return err
	}
	path := f.Night.work(fmt.Sprintf("part-%d.names", part))
	st, err := batch.Name(ctx, s, part, sorted(packs), path, batch.NameOptions{Workers: 1, Chains: f.Night.Chains})
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	log.Infof(ctx, "part %d: %d locations in %d objects, %d tables opened", part, st.Locations,
		st.Objects, st.Tables)
	names(path)
	return nil
}

// Group is an element: a group of captures.
type Group struct {
	Values []string // of the keys
	Packs  []string // that have its captures
}

// groupFn lists the groups.
type groupFn struct{ Night Night }

// ProcessElement emits each group.
func (f *groupFn) ProcessElement(_ []byte, packs func(*string) bool, groups func(Group)) error {
	by, _, err := f.Night.grouping()
	if err != nil {
		return err
	}
	all, err := by.Groups(sorted(packs))
	if err != nil {
		return err
	}
	for _, g := range all.Groups {
		groups(Group{g.Values, g.Packs()})
	}
	return nil
}

// mergeFn makes the profiles of one group.
type mergeFn struct{ Night Night }

// ProcessElement writes the profiles of a group, and emits their paths.
func (f *mergeFn) ProcessElement(ctx context.Context, of Group, names func(*string) bool,
	written func(string)) error {
	by, _, err := f.Night.grouping()
	if err != nil {
		return err
	}
	grouped, err := by.Groups(of.Packs)
	if err != nil {
		return err
	}
	answers, err := batch.OpenAnswers(sorted(names))
	if err != nil {
		return err
	}
	for _, g := range grouped.Groups {
		if !slices.Equal(g.Values, of.Values) {
			continue
		}
		w, err := f.write(ctx, g, answers)
		if err != nil {
			return errors.Join(err, answers.Close())
		}
		for _, file := range w.Files {
			written(filepath.Join(f.Night.Out, file.Path))
		}
	}
	return answers.Close()
}

// write writes the profiles of a group.
func (f *mergeFn) write(ctx context.Context, g *batch.Group, answers *batch.Answers) (*batch.Written, error) {
	out := batch.Output{Dir: f.Night.Out, Formats: f.Night.Formats,
		Demangler: func() *demangle.Demangler { return demangle.New(demangle.Simple) }}
	if !g.Accesses() {
		return g.Write(ctx, answers, out)
	}
	var err error
	if out.Session, err = analyze.Open(ctx, f.Night.session()); err != nil {
		return nil, err
	}
	w, err := g.Write(ctx, answers, out)
	return w, errors.Join(err, out.Session.Close())
}
