package dwarf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"symbolize/fixtures/dwarfbuild"
	"symbolize/fixtures/must"
)

// farApart is a file in which the first unit refers to an entry of the last, more than heapSection
// bytes behind.
func farApart(names int) Sections {
	first, last := cu(5), cu(5)
	abs := abstract("far")
	last.Root.Add(abs, fn("last", 0x900000, 4))
	units := []*dwarfbuild.Unit{first}
	first.Root.Add(sub(attr{Attr: atAbstractOrigin, Form: formRefAddr, Val: abs}, low(0x1000),
		length(4)))
	for i := range names {
		u := cu(5)
		u.Root.Add(fn(fmt.Sprintf("f%d%s", i, strings.Repeat("x", i%500)), 0x2000+uint64(i)*16, 8))
		units = append(units, u)
	}
	b := &dwarfbuild.Builder{Units: append(units, last)}
	return built(b.Sections(), false)
}

// fed is s with a .debug_info that grows by feed: feed runs beside the test with a function that
// makes the next n bytes available, until it returns or that reports false.
func fed(s Sections, feed func(next func(n int) bool)) Sections {
	whole := s.Info
	s.Info, s.Growth = make([]byte, len(whole)), newGrowth()
	info, g := s.Info, s.Growth
	go func() {
		at := 0
		feed(func(n int) bool {
			n = min(n, len(whole)-at)
			copy(info[at:], whole[at:at+n])
			at += n
			return g.add(n) == nil
		})
		g.end(nil)
	}()
	return s
}

// TestWalkWhileGrowing lets .debug_info come in small pieces. With the race detector it
// shows that nothing is read before it is there.
func TestWalkWhileGrowing(t *testing.T) {
	inputs := map[string]Sections{"far apart": farApart(20)}
	for version := uint16(2); version <= 5; version++ {
		inputs[fmt.Sprintf("version %d", version)] = sample(version)
	}
	for name, s := range inputs {
		want := dump(t, New(s, Options{}))
		for _, workers := range []int{1, 2} {
			for _, piece := range []int{1, 7, 100} {
				d := New(fed(s, func(next func(int) bool) {
					for range len(s.Info)/piece + 1 {
						next(piece)
					}
				}), Options{})
				var got strings.Builder
				err := d.Walk(t.Context(), workers, func(u *Unit) error {
					dumpUnit(&got, u)
					return nil
				})
				if err != nil || got.String() != want {
					t.Errorf("%s, %d workers, pieces of %d: %v\n%swant\n%s", name, workers, piece, err,
						got.String(), want)
				}
			}
		}
	}
}

// A section that stops growing is read as one that ends there.
func TestGrowthEndsEarly(t *testing.T) {
	s := sample(5)
	for n := range s.Info {
		cut := s
		cut.Info = s.Info[:n:n]
		want := dump(t, New(cut, Options{}))
		got := dump(t, New(fed(s, func(next func(int) bool) { next(n) }), Options{}))
		if got != want {
			t.Fatalf("%d of %d bytes:\n%swant\n%s", n, len(s.Info), got, want)
		}
	}
}

// A caller that ends a walk does not wait for the missing bytes, not even if a unit waits for an
// entry that never comes.
func TestGrowthStops(t *testing.T) {
	enough := errors.New("enough")
	far := farApart(20)
	most := func(next func(int) bool) {
		next(len(far.Info) - 100)
		for next(0) { // until it is stopped
			runtime.Gosched()
		}
	}
	for _, workers := range []int{1, 2} {
		near := far
		near.Info = near.Info[New(far, Options{}).second(t):]
		d := New(fed(near, func(next func(int) bool) {
			next(len(near.Info) - 100)
			for next(0) {
				runtime.Gosched()
			}
		}), Options{})
		err := d.Walk(t.Context(), workers, func(*Unit) error { return enough })
		if !errors.Is(err, enough) {
			t.Errorf("%d workers: error %v, want that of the visit", workers, err)
		}
		d = New(fed(far, most), Options{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			d.units.at(3)
			cancel()
		}()
		err = d.Walk(ctx, workers, func(*Unit) error { return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d workers: error %v, want %v", workers, err, context.Canceled)
		}
	}
}

// second returns the offset of the second unit.
func (d *Data) second(t *testing.T) uint64 {
	t.Helper()
	d.scan()
	return d.units.at(1).off
}

// TestLoadGrow reads a file as index does: .debug_info is inflated while it is walked.
func TestLoadGrow(t *testing.T) {
	s := farApart(4000)
	if len(s.Info) <= heapSection {
		t.Fatalf("%d bytes are read at once", len(s.Info))
	}
	z := zdebug(uint64(len(s.Info)), deflate(t, s.Info))
	for _, n := range []int{len(z), len(z) - 1, len(z) / 2, len(z) / 3, 20} {
		path := filepath.Join(t.TempDir(), "file")
		must.Write(t, path, append(z[:n:n], s.Abbrev...))
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		read := func(grow bool) (string, []string) {
			l := Load(f, []RawSection{
				{Name: ".zdebug_info", Size: uint64(n)},
				{Name: ".debug_abbrev", Offset: uint64(n), Size: uint64(len(s.Abbrev))},
			}, LoadOptions{Name: "file", Workers: 2, Grow: grow})
			defer l.Close()
			if grow != (l.Sections.Growth != nil) {
				t.Errorf("growth %v, asked for %v", l.Sections.Growth != nil, grow)
			}
			text := dump(t, New(l.Sections, Options{}))
			l.Wait()
			var problems []string
			for _, p := range l.Problems {
				problems = append(problems, p.Error())
			}
			return text, problems
		}
		want, wantProblems := read(false)
		got, problems := read(true)
		if got != want || fmt.Sprint(problems) != fmt.Sprint(wantProblems) {
			t.Errorf("%d of %d bytes: %d bytes of text, problems %q; at once %d bytes, problems %q",
				n, len(z), len(got), problems, len(want), wantProblems)
		}
		if (n < len(z)) != (len(problems) == 1) {
			t.Errorf("%d of %d bytes: problems %q", n, len(z), problems)
		}
	}
	// One that nobody walks is closed without waiting for it.
	path := filepath.Join(t.TempDir(), "file")
	must.Write(t, path, z)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := Load(f, []RawSection{{Name: ".zdebug_info", Size: uint64(len(z))}},
		LoadOptions{Workers: 2, Grow: true})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
