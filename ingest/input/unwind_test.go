package input

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

// scripted is an Unwinder that returns the words of the copied memory: the first is the
// StackEnd.
type scripted struct{ objects []ingest.Object }

func (s scripted) Worker() StackUnwinder { return s }

func (s scripted) Unwind(c *CopiedStack, words []uint64) ([]uint64, StackEnd, bool) {
	var all []uint64
	for b := c.Memory; len(b) >= 8; b = b[8:] {
		all = append(all, binary.LittleEndian.Uint64(b))
	}
	if len(all) == 0 {
		return words, StackNotCopied, false
	}
	return append(words, all[1:]...), StackEnd(all[0]), slices.Contains(all, UserGuess)
}

// InLinkRegister has the return address there in the code at 0x400…0x40f of pages.
func (s scripted) InLinkRegister(_ *CopiedStack, pc uint64) bool { return pc&0xff0 == 0x400 }

// TestCopiedStacks folds and replays samples with copied stacks, by where they end.
func TestCopiedStacks(t *testing.T) {
	c := newCapture()
	c.Events[0].SampleType |= perfbuild.RegsUser | perfbuild.StackUser
	c.Events[0].RegsUser = 1<<8 | 1<<7
	c.FeatureString(perfbuild.FeatureArch, "x86_64")
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
	c.lib(7, 0x500000, 0x10000, 0, "/lib/bare.so", 1)
	sample := func(chain []uint64, end StackEnd, words ...uint64) {
		stack := binary.LittleEndian.AppendUint64(nil, uint64(end))
		for _, w := range words {
			stack = binary.LittleEndian.AppendUint64(stack, w)
		}
		s := perfbuild.Sample{PID: 7, Time: 2, Chain: chain, IP: 0x400010,
			UserRegs:  perfbuild.Regs{ABI: 2, Values: []uint64{0x7fff0000, 0x400020}},
			UserStack: append(stack, make([]byte, 64-len(stack))...), DynSize: uint64(len(stack))}
		if words == nil {
			s.DynSize = 0
		}
		c.Sample(s)
	}
	sample(nil, StackComplete, 0x400010, 0x400101, 0x400201)
	sample([]uint64{cK, 0xffffffff81000100}, StackTruncated, 0x400020, 0x400101)
	sample(nil, StackElsewhere, 0x400010)
	sample(nil, StackNoTable, 0x400010, 0x500020)
	sample(nil, StackBroken, 0x400010, 0x400020, UserMarker, 0x400301)
	sample(nil, StackNotCopied)
	sample(nil, StackComplete, 0x500010, UserGuess, 0x400101, 0x400201)
	var seen []ingest.Object
	opts := Options{Unwinder: func(objects []ingest.Object) Unwinder {
		seen = objects
		return scripted{objects}
	}}
	p := fold(t, c.Bytes(), opts)
	got := dump(p)
	want := []string{
		":7: /bin/app+0x10 /bin/app+0x100 /bin/app+0x200 1 1",
		":7: [kernel.kallsyms]+0x100 /bin/app+0x20 /bin/app+0x100 [stack truncated] 1 1",
		":7: /bin/app+0x10 [other stack] 1 1",
		":7: /bin/app+0x10 /lib/bare.so+0x1f [no unwind table: /lib/bare.so] 1 1",
		":7: /bin/app+0x10 /bin/app+0x1f /bin/app+0x301 [chain broken] 1 1",
		":7: [stack not copied] 1 1",
		":7: /lib/bare.so+0x10 [callers uncertain] /bin/app+0x100 /bin/app+0x200 1 1",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if !slices.ContainsFunc(seen, func(o ingest.Object) bool { return o.File.Path == "/lib/bare.so" }) {
		t.Errorf("the unwinder got %v", seen)
	}
	if st, want := p.Stats.Copied, (ingest.CopiedStats{Samples: 7, Bytes: 64, Complete: 2, Truncated: 1,
		OtherStack: 1, NoTable: 1, Broken: 1, NotCopied: 1, Guessed: 1}); st != want {
		t.Errorf("%+v, want %+v", st, want)
	}
	replayCopied(t, c.Bytes(), opts)
}

// replayCopied checks that a replay has the same frames as the profile.
func replayCopied(t *testing.T, data []byte, opts Options) {
	t.Helper()
	c, err := openBytes(t, data, opts)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	frames, samples := 0, 0
	err = c.Replay(t.Context(), func(s *ReplaySample) error {
		samples++
		frames += len(s.Frames)
		for _, f := range s.Frames {
			if int(f.Location) >= len(p.Locations) {
				t.Errorf("location %d of %d", f.Location, len(p.Locations))
			}
		}
		return nil
	})
	if err != nil || samples != 7 || uint64(frames) != p.Stats.Frames {
		t.Errorf("%d samples with %d frames, %v; the profile has %d", samples, frames, err, p.Stats.Frames)
	}
}

// TestCopiedStacksWithoutUnwinder: copied stacks and possibly truncated ones are counted.
func TestCopiedStacksWithoutUnwinder(t *testing.T) {
	c := newCapture()
	c.Events[0].SampleType |= perfbuild.RegsUser | perfbuild.StackUser
	c.Events[0].RegsUser = 1<<8 | 1<<7
	for _, size := range []uint64{16, 8} {
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010, UserStack: make([]byte, 16), DynSize: size,
			UserRegs: perfbuild.Regs{ABI: 2, Values: []uint64{0x7fff0000, 0x400020}}})
	}
	st := fold(t, c.Bytes(), Options{}).Stats.Copied
	if want := (ingest.CopiedStats{Samples: 2, Bytes: 16, Full: 1}); st != want || st.Unwound() {
		t.Errorf("%+v, want %+v", st, want)
	}
}

// TestNoCopiedStacks: without them the unwinder is not made.
func TestNoCopiedStacks(t *testing.T) {
	c := newCapture()
	c.hit(7, 2, cU, 0x400010)
	fold(t, c.Bytes(), Options{Unwinder: func([]ingest.Object) Unwinder {
		t.Error("an unwinder was asked for")
		return nil
	}})
}

// TestVDSO32: the vdso of a 32-bit process has another build ID and other functions than the vdso
// of 64-bit processes.
func TestVDSO32(t *testing.T) {
	for arch, want := range map[string][]string{
		"x86_64": {"[vdso32]+0x100", "[vdso]+0x100"},
		"i686":   {"[vdso]+0x100", "[vdso]+0x100"},
	} {
		c := newCapture()
		c.FeatureString(perfbuild.FeatureArch, arch)
		for pid, at := range map[int32]uint64{7: 0xf7f5e000, 8: 0x7fff12340000} {
			c.lib(pid, at, 0x2000, 0, "[vdso]", 1)
			c.hit(pid, 2, cU, at+0x100)
		}
		got := dump(fold(t, c.Bytes(), Options{}))
		slices.Sort(got)
		for i := range got {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: %q, want %s", arch, got[i], want[i])
			}
		}
	}
}
