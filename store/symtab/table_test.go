package symtab

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"symbolize/fixtures/golden"
	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
)

// goldenFuncs is the content of testdata/v1.symtab: every form of a range.
var goldenFuncs = []Func{
	{0x1000, 0x20, "whole", 0},
	{0x1030, 0x40, "outer", 0},
	{0x1040, 0x10, "inner", 0},
	{0x1080, 8, "same name", 0},
	{0x1090, 8, "same name", 0},
	{0x10a0, 0x100, "unsized", Unsized},
	{0x1200, 0x80, "outer of two", 0},
	{0x1210, 0x10, "first inside", 0},
	{0x1230, 0x10, "second inside", Unsized},
	{0x1210, 0x30, "alias that goes on", Weak},
	{0xffffffff00000000, 0x1000, "_ZN3far4awayEv", 0},
}

const goldenText = "4096-4128 whole, 4144-4160 outer@4144/64, 4160-4176 inner, " +
	"4176-4208 outer@4144/64, 4224-4232 same name, 4240-4248 same name, 4256-4512 unsized?, " +
	"4608-4624 outer of two@4608/128, 4624-4640 first inside, " +
	"4640-4656 alias that goes on@4624/48, 4656-4672 second inside?, " +
	"4672-4736 outer of two@4608/128, 18446744069414584320-18446744069414588416 _ZN3far4awayEv"

// TestVersion1 reads a table of the first program. It must stay readable with the same digest; only
// a new version may be written otherwise.
func TestVersion1(t *testing.T) {
	path := filepath.Join("testdata", "v1.symtab")
	e := encode(t, Options{}, goldenFuncs...)
	if golden.Update() {
		must.Write(t, path, e.Header)
	}
	header := must.Read(t, path)
	tab, err := Open(header, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, tab); got != goldenText {
		t.Errorf("got\n%s\nwant\n%s", got, goldenText)
	}
	if sum, err := tab.Digest(); err != nil || sum != e.Digest {
		t.Errorf("digest %x, %v; the same functions have %x now", sum, err, e.Digest)
	}
}

// failingBlocks cannot read one block.
type failingBlocks struct {
	*Encoded
	kind BlockKind
	i    int
}

var errDisk = errors.New("disk error")

func (f failingBlocks) Block(kind BlockKind, i int) ([]byte, error) {
	if kind == f.kind && i == f.i {
		return nil, errDisk
	}
	return f.Encoded.Block(kind, i)
}

func manyFuncs(n int) []Func {
	funcs := make([]Func, n)
	for i := range funcs {
		funcs[i] = Func{addr.Addr(i * 16), 16, "function" + strings.Repeat("x", i%50), 0}
		funcs[i].Name += string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
	}
	return funcs
}

func TestBlocksThatCannotBeRead(t *testing.T) {
	e := encode(t, Options{ChunkSize: 300, StringSize: 1000, InlineSize: -1}, manyFuncs(1000)...)
	for _, kind := range []BlockKind{Chunk, Strings} {
		tab, err := Open(e.Header, failingBlocks{e, kind, 2})
		if err != nil {
			t.Fatal(err)
		}
		which := kind.String() + " 2"
		if _, err := tab.Digest(); !errors.Is(err, errDisk) || !strings.Contains(err.Error(), which) {
			t.Errorf("verify without %s: %v", which, err)
		}
		good, bad := 0, 0
		for f, err := range tab.All() {
			switch {
			case err == nil && f.Name != "":
				good++
			case errors.Is(err, errDisk):
				bad++
			default:
				t.Fatalf("%+v, %v", f, err)
			}
		}
		if good == 0 || bad == 0 || kind == Strings && good+bad != 1000 {
			t.Errorf("without %s 2: %d good, %d bad", kind, good, bad)
		}
	}
	// The other blocks are not in the header: without Blocks there is nothing.
	tab, err := Open(e.Header, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Lookup(100); !errors.Is(err, ErrFormat) {
		t.Errorf("look-up without blocks: %v", err)
	}
}

// countingBlocks counts reads, and returns the bytes in one buffer that it overwrites with the next
// call, as a store may.
type countingBlocks struct {
	*Encoded
	buf   []byte
	reads map[BlockKind][]int
}

func (c *countingBlocks) Block(kind BlockKind, i int) ([]byte, error) {
	b, err := c.Encoded.Block(kind, i)
	for k := range c.buf {
		c.buf[k] = 0xff
	}
	c.buf = append(c.buf[:0], b...)
	c.reads[kind] = append(c.reads[kind], i)
	return c.buf, err
}

func TestJoinReadsEachChunkOnceInOrder(t *testing.T) {
	e := encode(t, Options{ChunkSize: 300, StringSize: 64, InlineSize: -1}, manyFuncs(2000)...)
	blocks := &countingBlocks{Encoded: e, reads: make(map[BlockKind][]int)}
	tab, err := Open(e.Header, blocks)
	if err != nil {
		t.Fatal(err)
	}
	var addrs []addr.Addr
	for a := addr.Addr(5000); a < 30_000; a += 7 {
		addrs = append(addrs, a)
	}
	hits := make([]Hit, len(addrs))
	if err := tab.Join(addrs, hits); err != nil {
		t.Fatal(err)
	}
	read := blocks.reads[Chunk]
	if len(read) < 3 || len(read) == len(e.Chunks) || !slices.IsSorted(read) ||
		len(slices.Compact(slices.Clone(read))) != len(read) || len(blocks.reads[Strings]) != 0 {
		t.Errorf("read %v", blocks.reads)
	}
	// Names come right though string blocks as small as these are not compressed and stay in the
	// reader's buffer.
	for i, h := range hits {
		name, err := tab.Name(h.Name)
		if want := manyFuncs(2000)[addrs[i]/16].Name; err != nil || name != want {
			t.Fatalf("%#x: %q, %v; want %q", addrs[i], name, err, want)
		}
		if i > 50 {
			break
		}
	}
}

func TestPiecesWhileJoining(t *testing.T) {
	tab := open(t, encode(t, Options{ChunkSize: 300, InlineSize: -1}, manyFuncs(500)...))
	n := 0
	for p, err := range tab.Pieces() {
		if err != nil || p.Range.Start != addr.Addr(n*16) {
			t.Fatalf("piece %d: %+v, %v", n, p, err)
		}
		if hit, err := tab.Lookup(addr.Addr(8000 - n*16)); err != nil || n > 0 && !hit.OK {
			t.Fatalf("look-up beside: %+v, %v", hit, err)
		}
		if n++; n == 400 {
			break
		}
	}
}

// TestTablesAtOnce reads one encoded table by several readers at a time.
func TestTablesAtOnce(t *testing.T) {
	e := encode(t, Options{InlineSize: -1}, manyFuncs(5000)...)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			tab, err := Open(e.Header, e)
			if err != nil {
				t.Error(err)
				return
			}
			for range 5 {
				if sum, err := tab.Digest(); err != nil || sum != e.Digest {
					t.Error(sum, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestJoinDoesNotAllocate(t *testing.T) {
	tab := open(t, encode(t, Options{InlineSize: -1}, manyFuncs(5000)...))
	addrs, hits := make([]addr.Addr, 1000), make([]Hit, 1000)
	for i := range addrs {
		addrs[i] = addr.Addr(i * 80)
	}
	if n := testing.AllocsPerRun(20, func() {
		if err := tab.Join(addrs, hits); err != nil {
			t.Fatal(err)
		}
	}); n > 8 {
		t.Errorf("%v allocations a batch of 1000 addresses", n)
	}
}
