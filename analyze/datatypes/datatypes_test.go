package datatypes

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/analyze/annotate"
	"symbolize/analyze/code"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/flow"
	"symbolize/store"
	"symbolize/store/indexer"
)

const program = "../../fixtures/types/access"

// view has the symbols of the program, and with types its table of types.
func view(t *testing.T, types bool) store.View {
	t.Helper()
	o := store.NewOverlay()
	sink := func() (store.Sink, error) { return o, nil }
	if _, err := indexer.Index(t.Context(), []string{program}, nil, sink, indexer.Options{Types: types, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	return o
}

// object is the program as an object of a profile.
func object(t *testing.T) ingest.Object {
	t.Helper()
	b, err := hex.DecodeString("d89df4722da1014973d867a07b433347bf77e002")
	if err != nil {
		t.Fatal(err)
	}
	return ingest.Object{ID: buildid.New(b), File: ingest.FileRef{Path: "/srv/app/access"}, Kernel: ingest.NoObject}
}

// finders returns one that has a table, and one that has the file.
func finders(t *testing.T) map[string]*Finder {
	t.Helper()
	failed := func(err error) { t.Error(err) }
	plain := view(t, false)
	return map[string]*Finder{
		"table": New(t.Context(), view(t, true), nil, failed),
		"file":  New(t.Context(), plain, &code.Options{View: plain, Paths: []string{program}}, failed),
	}
}

// TestFind compares the members of all instructions with what gcc says: those of a table, and of the file.
func TestFind(t *testing.T) {
	text, err := os.ReadFile(program + ".truth")
	if err != nil {
		t.Fatal(err)
	}
	o := object(t)
	for name, f := range finders(t) {
		n := 0
		for line := range strings.Lines(string(text)) {
			parts := strings.Split(line, "\t")
			at, err := strconv.ParseUint(parts[0], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			a := f.Find(&o, []addr.Offset{addr.Offset(at)})[0]
			got := strings.ReplaceAll(strings.Join(a.Members(), "|"), "[]", "")
			if a.Reason != flow.Known || !slices.Contains(strings.Split(got, "|"), parts[1]) && got != parts[1] {
				t.Errorf("%s: %s: %s %q, want %s", name, parts[0], a.Field(), got, parts[1])
			}
			n++
		}
		if n < 30 {
			t.Errorf("%s: %d instructions", name, n)
		}
	}
}

func TestFindNothing(t *testing.T) {
	known := object(t)
	unknown := known
	unknown.ID = buildid.New(make([]byte, 20))
	for _, c := range []struct {
		name   string
		object ingest.Object
		at     addr.Offset
		want   string
	}{
		{name: "another build ID", object: unknown, at: 0x98f, want: "(no debug information)"},
		{name: "without a build ID", object: ingest.Object{File: known.File}, at: 0x98f, want: "(no debug information)"},
		{name: "no segment", object: known, at: 0x100000, want: "(no debug information)"},
		{name: "no function", object: known, at: 0x10, want: "(no debug information)"},
		{name: "no memory", object: known, at: 0x970, want: "(no memory operand)"},
		{name: "a member", object: known, at: 0x98f, want: "struct order.o_price"},
	} {
		for name, f := range finders(t) {
			for range 2 { // the second time it is known
				a := f.Find(&c.object, []addr.Offset{c.at})[0]
				if a.Field() != c.want || (a.Type() == c.want) != (a.Object == nil) {
					t.Errorf("%s, %s: %q, type %q; want %q", c.name, name, a.Field(), a.Type(), c.want)
				}
			}
			if list := f.Find(&c.object, nil); len(list) != 0 {
				t.Errorf("%s, %s: nothing was asked: %v", c.name, name, list)
			}
		}
	}
}

// sampled is a sample of an instruction of the program: the address of its data is of the program, if there is one.
type sampled struct {
	at    addr.Offset
	data  addr.Offset
	other bool   // the address is of another object
	named string // the name of the memory there, which is of no object
	count uint64
}

// profile is one of samples, in their order.
func profile(t *testing.T, list []sampled) *ingest.Profile {
	t.Helper()
	o := object(t)
	p := &ingest.Profile{Strings: []string{""}, Objects: []ingest.Object{o}, Callers: []ingest.StackID{0},
		Leaves: []ingest.LocationID{0}, Events: []ingest.Event{{Name: "cycles"}, {Name: "others"}}}
	var offsets []addr.Offset
	for _, s := range list {
		offsets = append(offsets, s.at)
	}
	slices.Sort(offsets)
	offsets = slices.Compact(offsets)
	for i, off := range offsets {
		p.Locations = append(p.Locations, ingest.Location{Offset: off})
		p.Callers, p.Leaves = append(p.Callers, 0), append(p.Leaves, ingest.LocationID(i))
	}
	for _, s := range list {
		at, _ := slices.BinarySearch(offsets, s.at)
		x := ingest.Sample{Stack: ingest.StackID(at + 1), Count: s.count, Weight: 10 * s.count}
		if s.data != 0 {
			tag := ingest.Tag{Key: ingest.AddressTag, Text: "[access]"}
			of := o
			if s.other {
				of.ID, of.File.Path = buildid.New(make([]byte, 19)), "/srv/app/other"
			}
			p.Strings = append(p.Strings, ingest.EncodeTags([]ingest.Tag{tag.At(&of, s.data)}))
			x.Tags = ingest.StringID(len(p.Strings) - 1)
		}
		if s.named != "" {
			p.Strings = append(p.Strings, ingest.JoinTags(ingest.AddressTag, s.named))
			x.Tags = ingest.StringID(len(p.Strings) - 1)
		}
		p.Samples = append(p.Samples, x)
	}
	return p
}

// Places in the program: instructions, and its variable books, which is behind the bytes of the file.
const (
	price  = 0x98f // o_price of a struct order
	best   = 0x811 // books[2].b_best
	orders = 0x9e3 // t_orders of a struct totals
	books  = 0x2080
	book   = 1080 // bytes
)

// TestRecorded: what recorded addresses of data say of the sampled instructions.
func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		name   string
		sample sampled
		want   string
		counts Recorded
	}{
		{name: "no address", sample: sampled{at: price}, want: "struct order.o_price"},
		{name: "the variable's own member", sample: sampled{at: best, data: books + 2*book + 1048},
			want: "struct book.b_best", counts: Recorded{Confirmed: 3}},
		{name: "another member", sample: sampled{at: best, data: books + 1056}, want: "(refuted by the address)", counts: Recorded{Refuted: 3}},
		{name: "another variable", sample: sampled{at: price, data: books + 32}, want: "(refuted by the address)", counts: Recorded{Refuted: 3}},
		{name: "a place without a variable", sample: sampled{at: price, data: 0x800}, want: "struct order.o_price"},
		{name: "behind the program", sample: sampled{at: price, data: 0x9000}, want: "struct order.o_price"},
		{name: "another object", sample: sampled{at: price, data: books, other: true}, want: "struct order.o_price"},
		{name: "the heap", sample: sampled{at: price, named: "[heap]"}, want: "struct order.o_price"},
		{name: "a global variable and the heap", sample: sampled{at: best, named: "[heap]"}, want: "(refuted by the address)",
			counts: Recorded{Refuted: 3}},
		{name: "a global variable and another object", sample: sampled{at: best, data: books, other: true},
			want: "(refuted by the address)", counts: Recorded{Refuted: 3}},
		{name: "a global variable and a place without a variable", sample: sampled{at: best, data: 0x800},
			want: "(refuted by the address)", counts: Recorded{Refuted: 3}},
		{name: "a global variable and memory behind the program", sample: sampled{at: best, data: 0x9000},
			want: "(refuted by the address)", counts: Recorded{Refuted: 3}},
		{name: "a global variable and an address without a mapping", sample: sampled{at: best, named: "[unmapped]"},
			want: "struct book.b_best"},
		{name: "a global variable and its object", sample: sampled{at: best, named: "[access]"}, want: "struct book.b_best"},
		{name: "a global variable and a name", sample: sampled{at: best, named: "books"}, want: "struct book.b_best"},
		{name: "an instruction without memory", sample: sampled{at: 0x970, data: books}, want: "(no memory operand)"},
		{name: "a function without debug information", sample: sampled{at: 0x960, data: books + book + 24 + 8},
			want: "struct book.b_levels[].l_first", counts: Recorded{Given: 3}},
	} {
		for name, f := range finders(t) {
			c.sample.count = 3
			p := profile(t, []sampled{c.sample})
			got := ""
			f.EachSample(p, func(_ *ingest.Sample, a *Access) { got += a.Field() })
			if got != c.want || f.Recorded != c.counts {
				t.Errorf("%s, %s: %q %+v, want %q %+v", c.name, name, got, f.Recorded, c.want, c.counts)
			}
			if w := f.Recorded.Warning(); (w != nil) != (c.counts.Refuted > 0) {
				t.Errorf("%s, %s: warning %v", c.name, name, w)
			}
			f.Load(p)
			text := f.Texts(&p.Objects[0], []addr.Offset{c.sample.at})[0]
			if silent := c.sample.at == 0x970; text != c.want && !silent || silent && text != "" {
				t.Errorf("%s, %s: text %q", c.name, name, text)
			}
		}
	}
}

// TestOtherMode: an address of user memory says nothing of the kernel's instruction.
func TestOtherMode(t *testing.T) {
	f := finders(t)["table"]
	p := profile(t, []sampled{{at: price, data: books, count: 1}})
	p.Objects[0].Kind = ingest.Kernel
	f.EachSample(p, func(*ingest.Sample, *Access) {})
	if f.Recorded != (Recorded{}) {
		t.Errorf("%+v", f.Recorded)
	}
}

// lines is a layout in words: members with samples, and holes.
func lines(l *annotate.TypeLayout) []string {
	out := []string{fmt.Sprintf("%s of %s: %d bytes, %d samples, weight %d, %.2f%%", l.Name, l.Object, l.Size, l.Samples, l.Weight, l.Share)}
	for i := range l.Members {
		m := &l.Members[i]
		switch {
		case m.Name == "":
			out = append(out, fmt.Sprintf("hole %d+%d", m.Offset, m.Size))
		case m.Samples > 0:
			out = append(out, fmt.Sprintf("%s %s %d+%d:%d %d %d %.2f%%", m.Name, m.Type, m.Offset, m.Size, m.Bits, m.Samples, m.Weight, m.Share))
		}
	}
	return out
}

func TestLayouts(t *testing.T) {
	list := []sampled{{at: price, count: 2}, {at: 0x980, count: 3}, {at: best, data: books + 2*book + 1048, count: 1},
		{at: best, data: books + 1056, count: 4}, {at: 0x960, count: 2}, {at: orders, count: 8}}
	want := map[string][]string{
		"weights": {"struct totals of /srv/app/access: 48 bytes, 8 samples, weight 80, 40.00%", "t_orders long int 0+8:0 8 80 40.00%",
			"struct order of /srv/app/access: 32 bytes, 5 samples, weight 50, 25.00%", "o_price long int 8+8:0 2 20 10.00%",
			"o_side unsigned int 22+1:1 3 30 15.00%", "o_state unsigned int 22+1:5 3 30 15.00%", "hole 23+1",
			"struct book of /srv/app/access: 1080 bytes, 1 samples, weight 10, 5.00%", "b_best struct level * 1048+8:0 1 10 5.00%"},
		"the first": {"struct totals of /srv/app/access: 48 bytes, 8 samples, weight 80, 40.00%", "t_orders long int 0+8:0 8 80 40.00%"},
	}
	for name, f := range finders(t) {
		for limit, key := range []string{0: "weights", 1: "the first"} {
			p := profile(t, list)
			p.Samples = append(p.Samples, ingest.Sample{Event: 1, Stack: 1, Count: 100, Weight: 100})
			var got []string
			for _, l := range f.Layouts(p, 0, limit == 1, limit) {
				got = append(got, lines(&l)...)
			}
			if !slices.Equal(got, want[key]) {
				t.Errorf("%s, %s:\n%s\nwant\n%s", name, key, strings.Join(got, "\n"), strings.Join(want[key], "\n"))
			}
		}
	}
}

// TestCanceled: what was not read because the run ends is no error of a file.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	plain := view(t, false)
	f := New(ctx, plain, &code.Options{View: plain, Paths: []string{program}}, func(err error) { t.Error(err) })
	o := object(t)
	if a := f.Find(&o, []addr.Offset{price})[0]; a.Object != nil {
		t.Errorf("%s", a.Field())
	}
	if v, _ := f.Variable(&o, books); v != nil {
		t.Errorf("%s", v.Text())
	}
}
