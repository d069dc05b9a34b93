package batch_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze"
	"symbolize/analyze/batch"
	"symbolize/fixtures/must"
	"symbolize/fixtures/storebuild"
	"symbolize/store/indexer"
)

const calls = "../../fixtures/callers/callers"

// newChainsNight is a night with two recordings of a program whose stacks are made of frame pointers
// and to be completed, beside others; plain completes them.
func newChainsNight(t *testing.T) *night {
	t.Helper()
	n := newNight(t)
	for _, path := range []string{"web/h0/callers.data", "db/h1/callers.data"} {
		copyFile(t, "../../fixtures/callers/callers.data", filepath.Join(n.dir, path))
	}
	var err error
	if n.captures, err = batch.Captures([]string{n.dir}); err != nil {
		t.Fatal(err)
	}
	n.captures = slices.DeleteFunc(n.captures, func(path string) bool {
		dir := filepath.Dir(path)
		return !strings.HasSuffix(dir, "web/h0") && !strings.HasSuffix(dir, "db/h1")
	})
	return n
}

// addCalls indexes the program with its calls.
func addCalls(t *testing.T, path string) {
	t.Helper()
	storebuild.Add(t, path, indexer.Options{DebugRoots: []string{}, Calls: true}, calls)
}

// TestChains: completed stacks of a batch are those of each capture by itself, also if the calls arrive
// after the captures were collected and named, and nothing is done twice.
func TestChains(t *testing.T) {
	n := newChainsNight(t)
	storebuild.Add(t, n.store, indexer.Options{}, calls)
	opts := n.options(t.TempDir())
	if _, err := batch.Run(t.Context(), n.captures, opts); err != nil {
		t.Fatal(err)
	}
	recorded := must.Tree(t, opts.Out)
	compare(t, recorded, n.plain(t))
	addCalls(t, n.store)
	for _, gaps := range []bool{false, true} {
		n.naming = analyze.Naming{Callers: analyze.StoredCallers, Gaps: gaps}
		want := n.plain(t)
		if text := string(want["web/h0.folded"]); !strings.Contains(text, "twice;inner;leaf") {
			t.Fatalf("no stack is completed:\n%s", text)
		}
		opts.Chains = batch.Chains{Proven: true, Gaps: gaps}
		sum, err := batch.Run(t.Context(), n.captures, opts)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, must.Tree(t, opts.Out), want)
		if sum.Kept != sum.Captures {
			t.Errorf("captures were read again: %+v", sum)
		}
		sum, err = batch.Run(t.Context(), n.captures, opts)
		if err != nil || sum.GroupsKept != sum.Groups || sum.NamesKept != 3 || sum.Tables != 0 {
			t.Errorf("nothing new: %+v, %v", sum, err)
		}
		compare(t, must.Tree(t, opts.Out), want)
	}
	opts.Chains = batch.Chains{}
	if _, err := batch.Run(t.Context(), n.captures, opts); err != nil {
		t.Fatal(err)
	}
	compare(t, must.Tree(t, opts.Out), recorded)
}

// TestChainsAgain: an old run gets the calls that arrived since, without its captures.
func TestChainsAgain(t *testing.T) {
	n := newChainsNight(t)
	storebuild.Add(t, n.store, indexer.Options{}, calls)
	opts := n.options(t.TempDir())
	opts.Chains.Proven = true // of nothing yet
	if _, err := batch.Run(t.Context(), n.captures, opts); err != nil {
		t.Fatal(err)
	}
	compare(t, must.Tree(t, opts.Out), n.plain(t))
	addCalls(t, n.store)
	for _, step := range []struct {
		name   string
		chains batch.Chains
	}{{"proven", batch.Chains{Proven: true}}, {"recorded", batch.Chains{}}, {"gaps", batch.Chains{Proven: true, Gaps: true}}} {
		n.naming = analyze.Naming{Gaps: step.chains.Gaps}
		if step.chains.Proven {
			n.naming.Callers = analyze.StoredCallers
		}
		nights, err := batch.Nights([]string{opts.Out}, func(err error) { t.Error(err) })
		if err != nil || len(nights) != 1 {
			t.Fatal(nights, err)
		}
		nights[0].Chains = step.chains
		s, err := analyze.Open(t.Context(), n.session())
		if err != nil {
			t.Fatal(err)
		}
		_, err = nights[0].Name(t.Context(), s, opts)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(step.name, err)
		}
		compare(t, must.Tree(t, opts.Out), n.plain(t))
		if nights, err = batch.Nights([]string{opts.Out}, nil); err != nil || nights[0].Chains != step.chains {
			t.Errorf("%s: the next one has %+v, %v", step.name, nights, err)
		}
	}
}

// TestChainsParts: parts that are named by tasks of their own have the same stacks; parts that are named
// in different ways are refused.
func TestChainsParts(t *testing.T) {
	n := newChainsNight(t)
	addCalls(t, n.store)
	c := &batch.Collector{Session: n.session(), Dir: t.TempDir(), Parts: 3}
	packs, _, err := c.Collect(t.Context(), n.captures, n.captures)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := func(part int, chains batch.Chains) string {
		t.Helper()
		s, err := analyze.Open(t.Context(), n.session())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, string(rune('0'+part))+".names")
		_, err = batch.Name(t.Context(), s, part, packs, path, batch.NameOptions{Chains: chains})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	proven := batch.Chains{Proven: true}
	names := []string{name(0, proven), name(1, proven), name(2, proven)}
	n.naming.Callers = analyze.StoredCallers
	by := n.options("").By
	grouped, err := by.Groups(packs)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(names)
	answers, err := batch.OpenAnswers(names)
	if err != nil {
		t.Fatal(err)
	}
	out := batch.Output{Dir: t.TempDir(), Formats: formats, Demangler: newDemangler}
	err = batch.WriteAll(t.Context(), grouped.Groups, answers, out, func(*batch.Group, *batch.Written) {})
	if err := errors.Join(err, answers.Close()); err != nil {
		t.Fatal(err)
	}
	compare(t, must.Tree(t, out.Dir), n.plain(t))
	name(1, batch.Chains{})
	if _, err := batch.OpenAnswers(names); err == nil || !strings.Contains(err.Error(), "another way") {
		t.Errorf("parts of two kinds: %v", err)
	}
}
