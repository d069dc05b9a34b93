package batch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"symbolize/analyze"
	"symbolize/analyze/batch"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/fixtures/storebuild"
	"symbolize/fixtures/sweep"
	"symbolize/store/indexer"
)

// TestLaterSymbols: symbols that arrive after a run name their objects alone, and only captures with
// copied stacks that could not be unwound without them are read again. The profiles are those of a
// run that had all symbols from the beginning.
func TestLaterSymbols(t *testing.T) {
	n := newNight(t)
	copyFile(t, "../../fixtures/captures/dwarf.data", filepath.Join(n.dir, "web/h0/dwarf.data"))
	n.captures = append(n.captures, filepath.Join(n.dir, "web/h0/dwarf.data"))
	slices.Sort(n.captures)
	want := n.plain(t)
	n.store = storebuild.New(t, indexer.Options{}, "../../fixtures/objects/bin/bpfload", "../../fixtures/objects/bin/mixed.debug")
	out := t.TempDir()
	for _, step := range []struct {
		name    string
		add     string // file that is indexed before the run
		read    int    // captures
		changed bool   // names of objects
		gained  string // a file with more names than before
	}{
		{name: "first", read: len(n.captures), changed: true},
		{name: "nothing new"},
		{name: "a file of no capture", add: "../../fixtures/sampled/none"},
		{name: "a program", add: "../../fixtures/objects/bin/spawn", changed: true, gained: "/srv/app/bin/spawn"},
		{name: "unwinding", add: "../../fixtures/objects/bin/mixed", read: 1, changed: true,
			gained: "/srv/app/bin/mixed"},
	} {
		switch {
		case step.add == "../../fixtures/sampled/none":
			storebuild.Add(t, n.store, indexer.Options{}, os.Args[0])
		case step.add != "":
			storebuild.Add(t, n.store, indexer.Options{}, step.add)
		}
		sum, err := batch.Run(t.Context(), n.captures, n.options(out))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v", step.name, sum)
		if read := sum.Captures - sum.Kept; read != step.read {
			t.Errorf("%s: %d captures were read, want %d", step.name, read, step.read)
		}
		if changed := sum.Objects != sum.ObjectsKept; changed != step.changed {
			t.Errorf("%s: %d objects, %d kept", step.name, sum.Objects, sum.ObjectsKept)
		}
		if step.gained != "" && !slices.ContainsFunc(sum.Gained, func(g batch.Gain) bool {
			return g.File == step.gained && g.Now > g.Before
		}) {
			t.Errorf("%s: %v lacks %s", step.name, sum.Gained, step.gained)
		}
	}
	storebuild.Add(t, n.store, indexer.Options{}, "../../fixtures/objects")
	if _, err := batch.Run(t.Context(), n.captures, n.options(out)); err != nil {
		t.Fatal(err)
	}
	compare(t, must.Tree(t, out), want)
}

// TestMissingCaptures: a capture that no task has read is listed, and profiles made without it name
// its share. When its task has run, its group has it.
func TestMissingCaptures(t *testing.T) {
	n := newNight(t)
	work := t.TempDir()
	collect := func(captures []string) (*batch.Progress, []string) {
		t.Helper()
		c := &batch.Collector{Session: n.session(), Dir: work, Parts: 2}
		if _, _, err := c.Collect(t.Context(), captures, n.captures); err != nil {
			t.Fatal(err)
		}
		var found [2][]string
		for i, pattern := range []string{"*.[ps][lh]a*", "*.stacks"} {
			var err error
			if found[i], err = filepath.Glob(filepath.Join(work, pattern)); err != nil {
				t.Fatal(err)
			}
		}
		p, err := batch.ReadProgress(found[0], found[1])
		if err != nil {
			t.Fatal(err)
		}
		return p, found[1]
	}
	p, packs := collect(n.captures[1:])
	if len(p.Missing) != 1 || p.Missing[0] != n.captures[0] || p.Collected != len(n.captures)-1 ||
		!errors.Is(p.Complete(), batch.ErrGaps) {
		t.Errorf("%+v, %v", p, p.Complete())
	}
	out := t.TempDir()
	n.mergePacks(t, packs, out, p.Note())
	profile, _ := load(t, n.session(), []string{filepath.Join(out, "web/h0.pb.gz")})
	if !slices.Contains(profile.Meta.Comments, p.Note()) || p.Note() == "" {
		t.Errorf("comments %q lack %q", profile.Meta.Comments, p.Note())
	}
	p, packs = collect(n.captures[:1])
	if p.Complete() != nil || p.Shares != 2 || p.Note() != "" {
		t.Errorf("%+v, %v", p, p.Complete())
	}
	out = t.TempDir()
	n.mergePacks(t, packs, out, p.Note())
	compare(t, must.Tree(t, out), n.plain(t))
}

// TestLostPack: captures that a task has read are missing if their pack was lost, and are collected
// again. Bundles without stacks are captures, too.
func TestLostPack(t *testing.T) {
	n := newNight(t)
	for _, name := range []string{"web/h0/a.bundle", "web/h0/b.bundle"} {
		must.Write(t, filepath.Join(n.dir, name), bundlebuild.NewHost().Bundle())
	}
	captures, err := batch.Captures([]string{n.dir})
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	collect := func(captures, all []string) (packs []string) {
		t.Helper()
		c := &batch.Collector{Session: n.session(), Dir: work, Parts: 2}
		packs, stats, err := c.Collect(t.Context(), captures, all)
		if err != nil || stats.Failed > 0 || len(packs) != 1 {
			t.Fatalf("packs %v, %+v, %v", packs, stats, err)
		}
		return packs
	}
	missing := func() []string {
		t.Helper()
		s, err := batch.ReadStatus(work, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.Missing
	}
	first, second := captures[:3], captures[3:]
	packs := collect(first, captures)
	collect(second, captures)
	if m := missing(); len(m) > 0 {
		t.Errorf("missing after both tasks: %q", m)
	}
	if err := os.Remove(packs[0]); err != nil {
		t.Fatal(err)
	}
	if m := missing(); !slices.Equal(m, first) {
		t.Errorf("missing without %s: %q, want %q", packs[0], m, first)
	}
	collect(first, captures)
	if m := missing(); len(m) > 0 {
		t.Errorf("missing after the first task ran again: %q", m)
	}
}

// mergePacks names packs of two parts and writes their profiles.
func (n *night) mergePacks(t *testing.T, packs []string, out, comment string) {
	t.Helper()
	s, err := analyze.Open(t.Context(), n.session())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for part := range 2 {
		names = append(names, filepath.Join(t.TempDir(), "names"))
		if _, err := batch.Name(t.Context(), s, part, packs, names[part], batch.NameOptions{Workers: 1}); err != nil {
			t.Fatal(err)
		}
	}
	answers, err := batch.OpenAnswers(names)
	if err != nil {
		t.Fatal(err)
	}
	by := n.options("").By
	grouped, err := by.Groups(packs)
	if err != nil {
		t.Fatal(err)
	}
	err = batch.WriteAll(t.Context(), grouped.Groups, answers, batch.Output{Dir: out, Formats: formats,
		Demangler: newDemangler, Comment: comment}, func(*batch.Group, *batch.Written) {})
	if err := errors.Join(err, answers.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestPrune: the files that a run keeps are removed, its profiles stay.
func TestPrune(t *testing.T) {
	n := newNight(t)
	out := t.TempDir()
	if _, err := batch.Run(t.Context(), n.captures, n.options(out)); err != nil {
		t.Fatal(err)
	}
	before := must.Tree(t, out)
	nights, err := batch.Nights([]string{filepath.Dir(out)}, func(err error) { t.Error(err) })
	if err != nil || len(nights) != 1 || nights[0].Out != out || nights[0].Last < "2026" {
		t.Fatalf("%+v, %v", nights, err)
	}
	status, err := batch.ReadStatus(out, nil)
	if err != nil || status.Expected != len(n.captures) || status.Collected != len(n.captures) ||
		status.Named != 3 || status.Parts != 3 || status.Packs != 1 || status.Groups == 0 {
		t.Errorf("%+v, %v", status, err)
	}
	if err := nights[0].Prune(); err != nil {
		t.Fatal(err)
	}
	compare(t, must.Tree(t, out), before)
	if _, err := os.Stat(filepath.Join(out, ".batch")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestWeek: seven nights with runs that are killed, with symbols of two programs that arrive on the fourth
// day, end with the profiles of undisturbed runs with all symbols. Each capture is read once, but
// for those with copied stacks that lacked an unwind table.
func TestWeek(t *testing.T) {
	full := storebuild.New(t, indexer.Options{}, "../../fixtures/objects")
	late := storebuild.New(t, indexer.Options{}, "../../fixtures/objects/bin/fixed", "../../fixtures/objects/bin/bpfload")
	rng := sweep.Rand(t)
	nights := make([]*night, 7)
	outs := make([]string, len(nights))
	read, captures, unwound := 0, 0, 0
	parent := t.TempDir()
	for day := range nights {
		n := &night{dir: t.TempDir(), store: late}
		for i, name := range []string{"fixed", "spawn", "dwarf", "mixed", "bpf-lines"} {
			to := filepath.Join(n.dir, []string{"web", "db"}[i%2], "h1", name+".data")
			copyFile(t, "../../fixtures/captures/"+name+".data", to)
			n.captures = append(n.captures, to)
		}
		slices.Sort(n.captures)
		nights[day], outs[day] = n, filepath.Join(parent, fmt.Sprint(day))
		captures += len(n.captures)
		if day == 3 {
			storebuild.Add(t, late, indexer.Options{}, "../../fixtures/objects")
			again(t, n, parent, &unwound)
		}
		for kill := 3; kill >= 0; kill-- {
			ctx, cancel := context.WithCancel(t.Context())
			opts := n.options(outs[day])
			left := rng.IntN(2 * len(n.captures))
			opts.Hooks = &batch.Hooks{Done: func() {
				if left--; left < 0 && kill > 0 {
					cancel()
				}
			}}
			sum, err := batch.Run(ctx, n.captures, opts)
			cancel()
			if err != nil && (kill == 0 || !errors.Is(err, context.Canceled)) {
				t.Fatal(err)
			}
			read += sum.Read
		}
	}
	if read != captures || unwound == 0 {
		t.Errorf("%d captures, %d reads; %d to be unwound again", captures, read, unwound)
	}
	for day, n := range nights {
		sum, err := batch.Run(t.Context(), n.captures, n.options(outs[day]))
		if err != nil {
			t.Fatal(err)
		}
		read += sum.Read
		n.store = full
		compare(t, must.Tree(t, outs[day]), n.plain(t))
	}
	if read != captures+unwound {
		t.Errorf("%d captures and %d to be unwound again, %d reads", captures, unwound, read)
	}
}

// again names the finished runs below a directory with the store of a night, and counts the captures
// whose stacks this cannot extend.
func again(t *testing.T, n *night, dir string, outdated *int) {
	t.Helper()
	s, err := analyze.Open(t.Context(), n.session())
	if err != nil {
		t.Fatal(err)
	}
	list, err := batch.Nights([]string{dir}, func(err error) { t.Error(err) })
	if err != nil || len(list) != 3 {
		t.Fatal(len(list), err)
	}
	for _, night := range list {
		sum, err := night.Name(t.Context(), s, batch.RunOptions{Demangler: newDemangler})
		if err != nil || len(sum.Gained) == 0 || sum.Read != 0 {
			t.Errorf("%+v, %v", sum, err)
		}
		*outdated += sum.Outdated
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
