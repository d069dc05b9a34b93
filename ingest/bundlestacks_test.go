package ingest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/bundlebuild"
	"symbolize/ingest/bundle"
)

// TestBundleStacks: the stack maps in a bundle make it a capture with samples, which its
// own kernel, modules, programs and maps explain.
func TestBundleStacks(t *testing.T) {
	const (
		valid, ip = 1, 2
		id        = "abcdefghijklmnopqrst"
	)
	h := bundlebuild.NewHost()
	user := stackDump(t, [][]byte{stackRecord(valid, id, 0x100), stackRecord(ip, "",
		bundlebuild.UserText+0x11)}, [][]byte{stackRecord(valid, id, 0x500)})
	kernel := stackDump(t, [][]byte{stackRecord(ip, "", bundlebuild.SlotA+0x10),
		stackRecord(ip, "", h.Text+bundlebuild.DoWork+5), stackRecord(ip, "", bundlebuild.Module+9)})
	counts := countDump(t, [5]any{0, 0, bundlebuild.Process, "work", 5}, [5]any{1, -14, 99, "else", 2})
	key := fieldsOf(t, "user_stack_id:0,kernel_stack_id:4,pid:8,comm:12:4")
	h.Entries = map[string][]byte{
		bundle.DumpName("stacks"): user, bundle.DumpName("kern_stacks"): kernel,
		bundle.DumpName("counts"): counts, bundle.DumpName("other"): counts,
	}
	path := filepath.Join(t.TempDir(), "capture.data")
	writeFile(t, path, h.Bundle())
	c, p := foldPath(t, path, Options{Stacks: StackOptions{Key: key}})
	if c.Kind() != kindBundle || !c.HasSamples() || p.Meta.Host != h.Name {
		t.Errorf("kind %q, samples %v, host %q", c.Kind(), c.HasSamples(), p.Meta.Host)
	}
	var kinds []string
	for _, s := range p.Samples {
		line := p.Strings[s.Comm] + ":"
		for _, l := range p.Stack(s.Stack) {
			o := &p.Objects[p.Locations[l].Object]
			line += " " + o.Kind.String()
		}
		kinds = append(kinds, line)
	}
	slices.Sort(kinds)
	if want := []string{"else: elf", "work: jit kernel module elf elf"}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q: %q", kinds, want, dump(p))
	}
	if o := objectOf(t, p, bundlebuild.Program); o.Kind != ELF {
		t.Errorf("%+v", o)
	}
	if programs, err := c.Programs(); err != nil || len(programs) == 0 {
		t.Errorf("programs %v, %v", programs, err)
	}
	if err := c.Replay(t.Context(), nil); err == nil {
		t.Error("stacks were replayed one by one")
	}
	for _, w := range p.Stats.Warnings {
		if strings.HasSuffix(w.Text, NoSamples) || w.Partial {
			t.Errorf("warning %+v", w)
		}
	}

	// A key that nothing describes is no reason to lend nothing.
	c, p = foldPath(t, path, Options{})
	if c.HasSamples() || len(p.Samples) != 0 || !slices.ContainsFunc(p.Stats.Warnings, func(w Warning) bool {
		return !w.Partial && strings.Contains(w.Text, "the fields of its key are not known")
	}) {
		t.Errorf("%d samples, %+v", len(p.Samples), p.Stats.Warnings)
	}

	// Stacks without counts, and without a side band, are samples all the same.
	h.Entries = map[string][]byte{bundle.DumpName("stacks"): user, bundle.PerfDataName: nil}
	writeFile(t, path, h.Bundle())
	_, p = foldPath(t, path, Options{})
	if p.Stats.Samples != 2 || !slices.ContainsFunc(p.Stats.Warnings, func(w Warning) bool {
		return w.Partial && strings.Contains(w.Text, bundle.PerfDataName)
	}) {
		t.Errorf("%d samples, %+v", p.Stats.Samples, p.Stats.Warnings)
	}

	// One that is cut off is told.
	h.Entries = map[string][]byte{bundle.DumpName("stacks"): user[:30]}
	writeFile(t, path, h.Bundle())
	_, p = foldPath(t, path, Options{})
	if !slices.ContainsFunc(p.Stats.Warnings, func(w Warning) bool {
		return w.Partial && strings.Contains(w.Text, bundle.DumpName("stacks"))
	}) {
		t.Errorf("%+v", p.Stats.Warnings)
	}
}
