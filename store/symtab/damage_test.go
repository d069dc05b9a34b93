package symtab

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"symbolize/fixtures/sweep"
	"symbolize/ingest/addr"
)

// walk reads a table in every way, to find panics.
func walk(tab *Table) error {
	addrs := make([]addr.Addr, 0, 64)
	r := tab.Range()
	for i := range uint64(cap(addrs)) {
		addrs = append(addrs, r.Start+addr.Addr(i*(1+uint64(r.End-r.Start)/64)))
	}
	slices.Sort(addrs)
	hits := make([]Hit, len(addrs))
	err := tab.Join(addrs, hits)
	for _, h := range hits {
		if h.OK {
			if _, e := tab.Name(h.Name); err == nil {
				err = e
			}
			if _, e := tab.Demangled(h.Name); err == nil {
				err = e
			}
		}
	}
	e := tab.JoinFrames(addrs, func(_ int, _ Hit, frames []Frame) {
		for _, f := range frames {
			if f.File != NoFile {
				if _, e := tab.File(f.File); err == nil {
					err = e
				}
			}
			if f.Name != NoName {
				if _, e := tab.Name(f.Name); err == nil {
					err = e
				}
			}
		}
	})
	if err == nil {
		err = e
	}
	n := 0
	for _, e := range tab.All() {
		if err == nil {
			err = e
		}
		if n++; n > 100_000 {
			break
		}
	}
	if _, e := tab.Digest(); err == nil {
		err = e
	}
	return err
}

func damageSample(t testing.TB, inline int) *Encoded {
	rng := rand.New(rand.NewPCG(5, 5))
	return encode(t, Options{ChunkSize: 128, StringSize: 128, InlineSize: inline},
		randomFuncs(rng, 60, 4000)...)
}

// damageDebug is a table with debug information.
func damageDebug(t testing.TB, inline int) *Encoded {
	rng := rand.New(rand.NewPCG(6, 5))
	funcs, _ := randomDebug(rng, 3)
	opts := Options{ChunkSize: 200, StringSize: 128, InlineSize: inline, Columns: true}
	return encodeDebug(t, opts, funcs)
}

// damageShown is damageDebug with names demangled, too.
func damageShown(t testing.TB, _ int) *Encoded {
	rng := rand.New(rand.NewPCG(6, 5))
	funcs, _ := randomDebug(rng, 3)
	return encodeShown(t, funcs, testDemangler)
}

func TestTruncated(t *testing.T) {
	t.Run("names", func(t *testing.T) { truncate(t, damageSample) })
	t.Run("demangled", func(t *testing.T) { truncateBlocks(t, damageShown(t, -1)) })
	t.Run("debug", func(t *testing.T) { truncate(t, damageDebug) })
}

func truncate(t *testing.T, sample func(testing.TB, int) *Encoded) {
	e := sample(t, 1<<20)
	for n := range e.Header {
		tab, err := Open(e.Header[:n:n], nil)
		if err == nil {
			err = walk(tab)
		}
		if err == nil {
			t.Fatalf("%d of %d bytes pass for a whole table", n, len(e.Header))
		}
		if !errors.Is(err, ErrFormat) {
			t.Fatalf("%d bytes: %v is no ErrFormat", n, err)
		}
	}
	truncateBlocks(t, sample(t, -1))
}

func truncateBlocks(t *testing.T, e *Encoded) {
	for kind, list := range map[BlockKind][][]byte{Chunk: e.Chunks, Strings: e.Strings} {
		at := len(list) - 1
		whole := list[at]
		for n := range whole {
			list[at] = whole[:n:n]
			tab, err := Open(e.Header, e)
			if err != nil {
				t.Fatal(err)
			}
			if err := walk(tab); !errors.Is(err, ErrFormat) {
				t.Fatalf("%s cut to %d bytes: %v", kind, n, err)
			}
		}
		list[at] = whole
	}
}

// TestFlippedBits flips every bit: the result is an error, another digest, or the same content.
func TestFlippedBits(t *testing.T) {
	t.Run("names", func(t *testing.T) { flip(t, damageSample(t, 1<<20)) })
	t.Run("debug", func(t *testing.T) { flip(t, damageDebug(t, 1<<20)) })
}

func flip(t *testing.T, e *Encoded) {
	show := func(tab *Table) string { return text(t, tab) + "\n" + debugText(t, tab) }
	want := show(open(t, e))
	for i := range sweep.Of(sweep.Rand(t), len(e.Header), 200) {
		for bit := range 8 {
			e.Header[i] ^= 1 << bit
			tab, err := Open(e.Header, nil)
			if err == nil {
				err = walk(tab)
			}
			if err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrVersion) {
				t.Fatalf("byte %d bit %d: %v", i, bit, err)
			}
			if err == nil {
				sum, _ := tab.Digest()
				if sum == e.Digest && show(tab) != want {
					t.Fatalf("byte %d bit %d: other content under the same digest", i, bit)
				}
			}
			e.Header[i] ^= 1 << bit
		}
	}
}

// TestDamageStaysLocal damages one chunk: the others stay readable.
func TestDamageStaysLocal(t *testing.T) {
	e := damageSample(t, -1)
	tab := open(t, e)
	var addrs []addr.Addr
	var chunk []int
	for i, c := range tab.h.chunks {
		addrs = append(addrs, addr.Addr(c.start))
		chunk = append(chunk, i)
	}
	e.Chunks[1] = nil
	tab, err := Open(e.Header, e)
	if err != nil {
		t.Fatal(err)
	}
	hits := make([]Hit, len(addrs))
	if err := tab.Join(addrs, hits); !errors.Is(err, ErrFormat) {
		t.Errorf("join: %v", err)
	}
	for i, h := range hits {
		if h.OK == (chunk[i] == 1) {
			t.Errorf("chunk %d: hit %v", chunk[i], h.OK)
		}
	}
	errs, pieces := 0, 0
	for _, err := range tab.Pieces() {
		if err != nil {
			errs++
		} else {
			pieces++
		}
	}
	if errs != 1 || pieces == 0 {
		t.Errorf("%d errors and %d pieces, want 1 error", errs, pieces)
	}
}

func TestVersionAndFlags(t *testing.T) {
	e := damageSample(t, 0)
	for _, tt := range []struct {
		at   int
		val  byte
		want error
	}{
		{at: 0, val: 'X', want: ErrFormat}, {at: 6, val: 0, want: ErrFormat}, {at: 6,
			val: Version + 1, want: ErrVersion}, {at: 7, val: 1, want: ErrVersion},
	} {
		h := slices.Clone(e.Header)
		h[tt.at] = tt.val
		if _, err := Open(h, nil); !errors.Is(err, tt.want) {
			t.Errorf("byte %d = %d: %v, want %v", tt.at, tt.val, err, tt.want)
		}
	}
}

// TestUnknownTagsAreSkipped writes a table of a newer program: with unknown blocks before
// and after the known ones.
func TestUnknownTagsAreSkipped(t *testing.T) {
	e := damageSample(t, -1)
	old := open(t, e)
	want := text(t, old)
	h := *old.h
	h.chunks = slices.Clone(h.chunks)
	for i := range e.Chunks {
		raw, err := h.chunks[i].block.Unpack(nil, e.Chunks[i])
		if err != nil {
			t.Fatal(err)
		}
		raw = append(AppendTagged(nil, 77, []byte("inline trees")), raw...)
		raw = AppendTagged(raw, 1<<40, nil)
		raw = AppendTagged(raw, 77, []byte("again"))
		e.Chunks[i], h.chunks[i].block = Pack(raw)
	}
	body := h.append(nil)
	e.Header = append(body[:8:8], AppendTagged(nil, 99, []byte("files"))...)
	e.Header = append(e.Header, body[8:]...)
	e.Header = AppendTagged(e.Header, 63, []byte("more"))
	if got := text(t, open(t, e)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e.Header = AppendTagged(e.Header, tagStrings, nil)
	if _, err := Open(e.Header, e); !errors.Is(err, ErrFormat) {
		t.Errorf("a known tag twice: %v", err)
	}
}

// TestHostileSizes has headers with numbers over their content.
func TestHostileSizes(t *testing.T) {
	entry := func(raw, stored uint32, packed bool) Packed {
		return Packed{raw: raw, stored: stored, zstd: packed}
	}
	bomb := make([]byte, 1<<20)
	packed, real := Pack(bomb)
	one := func(block Packed) header {
		c := chunkEntry{span: 10, ranges: 1, funcs: 1, strs: 1, block: block}
		return header{ranges: 1, funcs: 1, strs: 1, chunks: []chunkEntry{c}}
	}
	many := chunkEntry{span: 1 << 30, ranges: 1 << 20, block: entry(100, 100, false)}
	gap := chunkEntry{gap: 1, span: 10, ranges: 1, block: real}
	names := chunkEntry{span: 10, ranges: 1, funcs: 1, strs: 2, block: real}
	last := one(real)
	last.first = ^uint64(0) - 5
	tests := map[string]header{
		"raw size over the limit":  one(entry(MaxBlock+1, 10, true)),
		"ranges over the limit":    {ranges: MaxTable + 1, funcs: 1, strs: 1},
		"more ranges than bytes":   {ranges: 1 << 20, chunks: []chunkEntry{many}},
		"chunk without ranges":     {chunks: []chunkEntry{{span: 1, block: real}}},
		"chunk past the end":       last,
		"strings not in the sum":   one(real),
		"stored larger than raw":   one(entry(10, 11, true)),
		"plain of another size":    one(entry(10, 9, false)),
		"gap before the first":     {ranges: 1, chunks: []chunkEntry{gap}},
		"more strings than ranges": {ranges: 1, funcs: 1, strs: 2, chunks: []chunkEntry{names}},
	}
	for name, h := range tests {
		if _, err := Open(h.append(nil), nil); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	lying := real
	lying.raw /= 2
	if out, err := lying.Unpack(nil, packed); !errors.Is(err, ErrFormat) {
		t.Errorf("frame twice as large as said: %d bytes, %v", len(out), err)
	}
	double := slices.Concat(packed, packed)
	two := entry(real.raw, uint32(len(double)), true)
	if _, err := two.Unpack(nil, double); !errors.Is(err, ErrFormat) {
		t.Errorf("two frames in one block: %v", err)
	}
}

// FuzzOpen passes a header and two blocks of any content to every reader.
func FuzzOpen(f *testing.F) {
	in := damageSample(f, 0)
	f.Add(in.Header, []byte{}, []byte{})
	out := damageSample(f, -1)
	f.Add(out.Header, out.Chunks[0], out.Strings[0])
	one := encode(f, Options{InlineSize: -1}, Func{1, 2, "f", 0}, Func{2, 9, "f", Unsized})
	f.Add(one.Header, one.Chunks[0], one.Strings[0])
	d := damageDebug(f, 1<<20)
	f.Add(d.Header, []byte{}, []byte{})
	d = damageDebug(f, -1)
	f.Add(d.Header, d.Chunks[0], d.Strings[0])
	f.Fuzz(func(t *testing.T, header, chunk, text []byte) {
		tab, err := Open(header, &Encoded{Chunks: [][]byte{chunk}, Strings: [][]byte{text, text, text}})
		if (err == nil) == (tab == nil) {
			t.Fatal("a table and an error, or neither")
		}
		if err == nil {
			_ = walk(tab)
		}
	})
}

// FuzzChunk passes any content to the chunk reader behind the decompressor, which
// rejects random bytes.
func FuzzChunk(f *testing.F) {
	e := damageSample(f, -1)
	tab := open(f, e)
	for i := range 3 {
		raw, err := tab.h.chunks[i].block.Unpack(nil, e.Chunks[i])
		if err != nil {
			f.Fatal(err)
		}
		c := tab.h.chunks[i]
		f.Add(slices.Clone(raw), c.span, c.ranges, c.funcs, c.strs)
	}
	f.Fuzz(func(t *testing.T, raw []byte, span, ranges, funcs, strs uint64) {
		entry := chunkEntry{start: 1000, span: span % (1 << 60), ranges: ranges, funcs: funcs, strs: strs}
		var c chunkCursor
		if c.open(entry, raw, nil) != nil {
			return
		}
		last := entry.start
		for c.next() {
			if c.start < last || c.end <= c.start || c.end > entry.start+entry.span ||
				c.start < c.funcStart || c.end > c.funcStart+c.funcSize {
				t.Fatalf("range %d-%d after %d, function %d+%d", c.start, c.end, last,
					c.funcStart, c.funcSize)
			}
			last = c.end
		}
		_ = c.close()
	})
}

// FuzzDebug passes any content to the reader of debug information behind the decompressor: accepted
// values are within bounds, and reading for addresses has the same result as reading all.
func FuzzDebug(f *testing.F) {
	tab := open(f, damageDebug(f, -1))
	for i := range min(4, len(tab.h.chunks)) {
		if err := tab.openChunk(i, &tab.debug); err != nil {
			f.Fatal(err)
		}
		f.Add(columns(tab.debug.cols[:]).append(nil), uint64(300), uint64(len(tab.debug.cols[colPieceSegs])))
	}
	f.Fuzz(func(t *testing.T, body []byte, size, pieces uint64) {
		all := debugCursor{names: 50, numFiles: 30}
		some, skip := all, all
		if all.open(body) != nil {
			return
		}
		if some.open(body) != nil || skip.open(body) != nil {
			t.Fatal("opens once and not again")
		}
		size = 1 + size%1000
		for range pieces % 100 {
			if all.load(1000, size, nil) != nil {
				return
			}
			// All of a range was read, so that each address of it can be asked for.
			if err := some.load(1000, size, []addr.Addr{addr.Addr(1000 + size/2)}); err != nil {
				t.Fatal(err)
			}
			if err := skip.pass(); err != nil {
				t.Fatal(err)
			}
			for _, e := range all.extents(nil, 1000) {
				if e.pieces > 0 && (e.start < 1000 || e.end > 1000+size || e.end <= e.start) {
					t.Fatalf("call at %d to %d in a range of %d", e.start, e.end, size)
				}
			}
			at, total := uint64(0), uint64(0)
			for i := range all.segs {
				s := &all.segs[i]
				if at <= size/2 && size/2 < at+s.size {
					got := all.appendFrames(nil, s, 7)
					if want := some.appendFrames(nil, &some.segs[0], 7); !slices.Equal(got, want) {
						t.Fatalf("%v, alone %v", got, want)
					}
					if len(got) > MaxDepth+1 {
						t.Fatalf("%d frames", len(got))
					}
					for _, fr := range got {
						if fr.Name != NoName && fr.Name >= 50 || fr.File != NoFile && fr.File >= 30 {
							t.Fatalf("frame %+v", fr)
						}
					}
				}
				at += s.size
				total++
			}
			if at != size || total > MaxSegments {
				t.Fatalf("%d segments of %d bytes in a range of %d", total, at, size)
			}
		}
		if a, b := all.close(), skip.close(); (a == nil) != (b == nil) {
			t.Fatalf("read: %v, skipped: %v", a, b)
		}
	})
}
