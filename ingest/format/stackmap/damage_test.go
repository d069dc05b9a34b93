package stackmap

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/golden"
	"symbolize/fixtures/must"
	"symbolize/fixtures/sweep"
	"symbolize/ingest/format/rawdump"
)

// lines are the samples of a Set, one a line, in their order.
func (s *Set) lines() []string {
	var out []string
	for i := range s.Samples {
		one := Set{Form: s.Form, IDs: s.IDs, Symbols: s.Symbols, Samples: s.Samples[i : i+1],
			frames: s.frames, stacks: s.stacks}
		out = append(out, one.text(Labels{PID: true, TID: true, Comm: true}))
	}
	return out
}

// small is a Set of three samples with all that frames can be.
func small() *Set {
	s := newSet(Raw)
	id := func(text string) uint32 {
		f, _ := s.buildIDFrame([]byte(text), "0")
		return f.Ref
	}
	a, b := id("aa00000000000000000000000000000000000000"), id("0102030405060708")
	user := s.add([]Frame{{0x1234, a, Valid}, {0xabcdef, b, Valid}, {0x7f1200345678, 0, IP}})
	other := s.add([]Frame{{0x99, b, Valid}})
	kernel := s.add([]Frame{{0xffffffff81000123, 0, IP}, {0xffffffffc0000001, 0, IP}})
	s.count(Sample{User: user, Kernel: kernel, PID: 12, TID: 13, Comm: "one two", Count: 345})
	s.count(Sample{User: other, PID: 20, TID: 21, Comm: "x", Count: 67})
	s.count(Sample{User: user, PID: 30, TID: 30, Comm: "yy", Count: 89})
	s.finish()
	return s
}

// smallDump is a stack map with three stacks, raw and as bpftool prints it.
func smallDump(t testing.TB) (raw, json, plain []byte) {
	t.Helper()
	h := rawdump.Header{Type: mapTypeStackTrace, Flags: rawdump.FlagBuildID, KeySize: 4,
		ValueSize: 2 * frameSize, Name: "stacks"}
	var pairs [][2][]byte
	j, p := "", ""
	for i := range 3 {
		key, value := []byte{byte(i + 1), 0, 0, 0}, make([]byte, 2*frameSize)
		value[0], value[4], value[frameOffsetAt] = byte(Valid), 0xee, byte(0x10+i)
		value[frameSize], value[frameSize+frameOffsetAt+7] = byte(IP), 0xff
		pairs = append(pairs, [2][]byte{key, value})
		hex := func(b []byte) string {
			text := ""
			for _, c := range b {
				text += fmt.Sprintf(`"0x%02x",`, c)
			}
			return "[" + strings.TrimSuffix(text, ",") + "]"
		}
		j += fmt.Sprintf(`{"key":%s,"value":%s},`, hex(key), hex(value))
		p += fmt.Sprintf("key: % x  value: % x\n", key, value)
	}
	raw, err := rawdump.Append(nil, h, pairs)
	if err != nil {
		t.Fatal(err)
	}
	return raw, []byte("[" + strings.TrimSuffix(j, ",") + "]"), []byte(p + "Found 3 elements\n")
}

// inputs are small inputs of every form.
func inputs(t testing.TB) map[string][]byte {
	raw, json, plain := smallDump(t)
	s := small()
	return map[string][]byte{
		"raw": raw, "json": json, "plain": plain, "values": raw[len(raw)-3*(4+2*frameSize):],
		"bpftrace": asBpftrace(s), "bpftrace.json": asBpftraceJSON(s, true), "systing": asSysting(s), "systing.gz": must.Gzip(t, asSysting(s)),
		"gadget.json": asGadget(s, ""), "gadget.pretty": asGadget(s, "   "),
		"gadget.yaml": asGadgetYAML(s), "printed": []byte(printed),
	}
}

// TestTruncated: every prefix of an input gives samples of the whole, in their order, but
// for the last one, which a text does not always show to be incomplete; and it reports that
// something is missing wherever the form has an end.
func TestTruncated(t *testing.T) {
	ends := map[string]bool{"raw": true, "json": true, "plain": true, "systing.gz": true}
	for name, data := range inputs(t) {
		opts := &Options{}
		if name == "values" {
			opts.Depth = 2 // a key before each value makes no stack of it
		}
		whole, err := Read(input(name, data), opts)
		if err != nil && name != "values" {
			t.Fatalf("%s: %v", name, err)
		}
		if name == "values" {
			continue
		}
		want := whole.lines()
		if len(want) < 3 {
			t.Fatalf("%s: samples %q", name, want)
		}
		for n := range data {
			set, err := Read(input(name, data[:n]), opts)
			if set == nil {
				if err == nil {
					t.Fatalf("%s: nothing and no error of %d bytes", name, n)
				}
				continue
			}
			got := set.lines()
			for i, line := range got {
				if i < len(got)-1 && (i >= len(want) || line != want[i]) {
					t.Fatalf("%s: sample %d of %d bytes: %s\nwant %s", name, i, n, line, want[min(i, len(want)-1)])
				}
			}
			// bpftool's last line is whole with its number.
			if ends[name] && err == nil && len(data)-n > len(" elements\n") {
				t.Fatalf("%s: no error of %d bytes of %d", name, n, len(data))
			}
		}
	}
}

// TestTruncatedValues is the same for values one behind the other.
func TestTruncatedValues(t *testing.T) {
	data := fixture(t, "load/stacks.values")[:20*frameSize*5]
	whole := mustRead(t, "values", data, &Options{Depth: 20})
	for n := range data {
		set, err := Read(input("values", data[:n]), &Options{Depth: 20})
		stacks := n / (20 * frameSize)
		if (err == nil) != (n%(20*frameSize) == 0) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if set != nil && len(set.Samples) != min(stacks, len(whole.Samples)) {
			t.Fatalf("%d bytes: %d samples", n, len(set.Samples))
		}
	}
}

// TestTruncatedCounts: with each prefix of a count map the counts equal the whole map's, as far as
// they go.
func TestTruncatedCounts(t *testing.T) {
	stacks := fixture(t, "full/stacks.raw")
	counts := fixture(t, "full/bare.raw")
	opts := func(data []byte) *Options {
		return &Options{Counts: input("bare.raw", data), Key: mustFields(t, recordedKey)}
	}
	want := mustRead(t, "stacks.raw", stacks, opts(counts)).lines()
	for n := range counts {
		set, err := Read(input("stacks.raw", stacks), opts(counts[:n]))
		if err == nil {
			t.Fatalf("no error of %d bytes", n)
		}
		if set == nil {
			continue
		}
		got := set.lines()
		if d := golden.FirstDifference(strings.Join(got, "\n"), strings.Join(want[:len(got)], "\n")); d != "" {
			t.Fatalf("%d bytes: %s", n, d)
		}
	}
}

// TestFlipped changes one byte after another: nothing panics or hangs.
func TestFlipped(t *testing.T) {
	rnd := sweep.Rand(t)
	for name, data := range inputs(t) {
		for i := range sweep.Of(rnd, len(data), 300) {
			old := data[i]
			for _, c := range []byte{0, 0xff, old ^ 1, old ^ 0x20, '"', ']'} {
				data[i] = c
				Read(input(name, data), &Options{})
			}
			data[i] = old
		}
	}
}

// FuzzRead: any bytes, read as stacks, counts, or bare values, always give the same Set or error,
// and frames and labels refer to existing entries.
func FuzzRead(f *testing.F) {
	for _, data := range inputs(f) {
		f.Add(data, []byte{}, byte(0))
	}
	raw, json, plain := smallDump(f)
	count, err := rawdump.Append(nil, rawdump.Header{Type: 1, KeySize: 4, ValueSize: 8},
		[][2][]byte{{{1, 0, 0, 0}, {5, 0, 0, 0, 0, 0, 0, 0}}, {{0xef, 0xff, 0xff, 0xff}, make([]byte,
			8)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw, count, byte(1))
	f.Add(json, []byte(`[{"key":["0x01","0x00","0x00","0x00"],"values":[{"cpu":0,"value":["0x01","0x00",`+
		`"0x00","0x00"]},{"cpu":1,"value":["0x02","0x00","0x00","0x00"]}]}]`), byte(1))
	f.Add(plain, []byte("key: 02 00 00 00  value: 07 00 00 00\nFound 1 element\n"), byte(1))
	f.Add(raw[len(raw)-128:], []byte{}, byte(2))
	for _, x := range memleakTexts {
		f.Add([]byte(x.text), []byte{}, byte(0))
	}
	f.Fuzz(func(t *testing.T, data, counts []byte, how byte) {
		opts := func() *Options {
			o := &Options{}
			if how&1 != 0 {
				o.Counts = input("counts", counts)
			}
			if how&2 != 0 {
				o.Depth = 2
			}
			if how&4 != 0 {
				o.Key = []Field{{UserStackID, 0, 4}, {KernelStackID, 4, 4}, {PID, 8, 4}, {Comm, 12, 5}}
				o.Value = &Field{Offset: 1, Size: 3}
			}
			return o
		}
		set, err := Read(input("x", data), opts())
		again, err2 := Read(input("x", data), opts())
		if fmt.Sprint(err) != fmt.Sprint(err2) || (set == nil) != (again == nil) {
			t.Fatalf("%v and then %v", err, err2)
		}
		if set == nil {
			if err == nil {
				t.Fatal("nothing, and no error")
			}
			return
		}
		if a, b := strings.Join(set.lines(), "\n"), strings.Join(again.lines(), "\n"); a != b {
			t.Fatalf("%s\nand then\n%s", a, b)
		}
		for i := range set.Samples {
			if sm := &set.Samples[i]; sm.Count == 0 || int(sm.Event) >= len(set.Events) {
				t.Fatalf("sample %+v", sm)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for _, form := range []string{"raw", "json", "txt"} {
		stacks, counts := fixture(b, "load/stacks."+form), fixture(b, "load/bare."+form)
		fields := mustFields(b, recordedKey)
		b.Run(form, func(b *testing.B) {
			b.SetBytes(int64(len(stacks) + len(counts)))
			b.ReportAllocs()
			for b.Loop() {
				mustRead(b, form, stacks, &Options{Counts: input("counts", counts), Key: fields})
			}
		})
	}
}

// TestBounds: a Set keeps no more frames and samples than its bounds, and reports how many
// it leaves out.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		size            int64
		frames, samples int
	}{
		{size: -1, frames: floorFrames, samples: floorSamples}, {size: 0, frames: floorFrames,
			samples: floorSamples},
		{size: 1000, frames: floorFrames + 64_000, samples: floorSamples + 4000}, {size: 1 << 40,
			frames: maxFrames, samples: maxSamples},
	} {
		s := newSet(Raw)
		if s.bound(tt.size); s.maxFrames != tt.frames || s.maxSamples != tt.samples {
			t.Errorf("of %d bytes %d frames, %d samples; want %d, %d", tt.size, s.maxFrames,
				s.maxSamples, tt.frames, tt.samples)
		}
	}
	s := newSet(Raw)
	s.maxFrames, s.maxSamples = maxDepth+5, 3
	for i := range uint64(6) { // two frames each: the last ones do not fit
		p := s.add([]Frame{{Offset: 1000 + i, Status: IP}, {Offset: 1, Status: IP}})
		s.count(Sample{User: p, Count: 10 + i})
	}
	s.finish()
	if s.NumStacks() != 3 || len(s.Samples) != 3 || len(s.Frames()) != 4 {
		t.Errorf("%d stacks, %d samples, %d frames", s.NumStacks(), len(s.Samples),
			len(s.Frames()))
	}
	var got []string
	for _, err := range s.Warnings {
		got = append(got, err.Error())
	}
	want := []string{"more than 1029 frames: further stacks are left out",
		"more than 3 pairs of stack and labels: 42 samples are left out"}
	if !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}
