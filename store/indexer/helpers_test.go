package indexer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

// memory is a sink in memory that records its input.
type memory struct {
	*store.Overlay
	mu     sync.Mutex
	ids    map[buildid.ID]bool
	merges int
	puts   []string
	opened int
	fail   error // the error of Merge, if not nil
}

func newMemory() *memory {
	return &memory{Overlay: store.NewOverlay(), ids: make(map[buildid.ID]bool)}
}

func (m *memory) Merge(ctx context.Context, c *store.Contribution) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	if !c.Manifest.IsAlias() {
		m.ids[c.Manifest.ID] = true
		m.merges++
	}
	return m.Overlay.Merge(ctx, c)
}

func (m *memory) PutDir(dir string, rows store.DirRows) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.puts = append(m.puts, dir)
	return m.Overlay.PutDir(dir, rows)
}

func (m *memory) open() (store.Sink, error) {
	m.opened++
	return m, nil
}

// index runs Index into m with nothing of this machine in it.
func (m *memory) index(t testing.TB, opts Options, paths ...string) *Summary {
	t.Helper()
	if opts.DebugRoots == nil {
		opts.DebugRoots = []string{}
	}
	sum, err := Index(t.Context(), paths, m, m.open, opts)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// again runs Index where nothing may have changed.
func (m *memory) again(t testing.TB, opts Options, paths ...string) *Summary {
	t.Helper()
	if opts.DebugRoots == nil {
		opts.DebugRoots = []string{}
	}
	refuse := func() (store.Sink, error) { return nil, errors.New("the sink was opened") }
	sum, err := Index(t.Context(), paths, m, refuse, opts)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// object returns the manifest of the one object with that ID.
func (m *memory) object(t testing.TB, id buildid.ID) *store.Manifest {
	t.Helper()
	found, err := m.Find(id)
	if err != nil || len(found) != 1 {
		t.Fatalf("object %s: %d found, %v", id, len(found), err)
	}
	return found[0]
}

// dump lists all that the sink has: objects, sources, every function. Paths are given relative to
// root.
func (m *memory) dump(t testing.TB, root string) string {
	t.Helper()
	var out strings.Builder
	ids := make([]buildid.ID, 0, len(m.ids))
	for id := range m.ids {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, buildid.ID.Compare)
	for _, id := range ids {
		o := m.object(t, id)
		fmt.Fprintf(&out, "%s kind %d machine %d type %d layout %d sections %d refs %v vdso %v\n", id,
			o.Kind, o.Machine, o.Type, len(o.Layout), len(o.Sections), o.RefSyms, o.VDSO)
		for i, s := range o.Sources {
			fmt.Fprintf(&out, "  %s from %s, %d bytes, digest %x\n", s.Kind,
				strings.TrimPrefix(s.Path, root+"/"), s.Size, s.Digest[:4])
			if s.Kind == store.Unwind {
				dumpUnwind(t, &out, m, o, i)
				continue
			}
			table, err := m.Open(o, i)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := table.Digest(); err != nil {
				t.Fatal(err)
			}
			for f, err := range table.All() {
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, "    %#x+%#x %s\n", f.Start, f.Size, f.Name)
			}
		}
	}
	return out.String()
}

// dumpUnwind checks an unwind table, and prints its counts.
func dumpUnwind(t testing.TB, out *strings.Builder, m *memory, o *store.Manifest, i int) {
	t.Helper()
	table, err := m.OpenUnwind(o, i)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := table.Digest()
	if err != nil || sum != o.Sources[i].Digest {
		t.Fatalf("digest %x, %v; want %x", sum, err, o.Sources[i].Digest)
	}
	fmt.Fprintf(out, "    %d functions, %d rows, %d bytes\n", table.NumFuncs(), table.NumRows(),
		table.Named())
}

// names returns the names of an object's functions in its sources of one kind.
func (m *memory) names(t testing.TB, id buildid.ID, kind store.SourceKind) []string {
	t.Helper()
	o := m.object(t, id)
	var names []string
	for i, s := range o.Sources {
		if s.Kind != kind {
			continue
		}
		table, err := m.Open(o, i)
		if err != nil {
			t.Fatal(err)
		}
		for f, err := range table.All() {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, f.Name)
		}
	}
	return names
}

// settle waits until files that were just written count as settled: until one that is written
// now has a time that is so much later.
func settle() {
	for begin := probe(); probe()-begin <= int64(racy); {
		time.Sleep(time.Millisecond)
	}
}

// probe returns the time of a new file, ns.
func probe() int64 {
	f, err := os.CreateTemp("", "settle-*")
	if err != nil {
		panic(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		panic(err)
	}
	return fi.ModTime().UnixNano()
}

// objectsDir holds recorded programs; see fixtures/README.md.
const objectsDir = "../../fixtures/objects"

// fixture reads one of them.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b := must.Read(t, filepath.Join(objectsDir, name))
	return b
}

// mixedID is the build ID of objects/bin/mixed and of its debug file.
func mixedID(t testing.TB) buildid.ID {
	t.Helper()
	m := newMemory()
	m.index(t, Options{}, filepath.Join(objectsDir, "bin/mixed.debug"))
	for id := range m.ids {
		return id
	}
	t.Fatal("mixed.debug gives no object")
	return buildid.ID{}
}

// problems gives the problems of a run, paths relative to root.
func problems(sum *Summary, root string) string {
	var out []string
	for _, p := range sum.Problems {
		out = append(out, strings.ReplaceAll(p.Error(), root+"/", ""))
	}
	return strings.Join(out, "\n")
}

// withoutID changes the type of the build ID note: the file has none any more.
func withoutID(t testing.TB, b []byte) []byte {
	t.Helper()
	b = slices.Clone(b)
	at := bytes.Index(b, []byte("\x03\x00\x00\x00GNU\x00"))
	if at < 0 {
		t.Fatal("no build ID note")
	}
	b[at] = 0x77
	return b
}

// withDebugCRC changes the CRC in .gnu_debuglink from one debug file's to another's.
func withDebugCRC(t testing.TB, b, from, to []byte) []byte {
	t.Helper()
	le := binary.LittleEndian
	old := le.AppendUint32(nil, crc32.ChecksumIEEE(from))
	if bytes.Count(b, old) != 1 {
		t.Fatal("no CRC to change")
	}
	return bytes.Replace(b, old, le.AppendUint32(nil, crc32.ChecksumIEEE(to)), 1)
}

// lookupOne looks up one address in a table.
func lookupOne(table *symtab.Table, a addr.Addr) (hit symtab.Hit, frames []symtab.Frame, err error) {
	err = table.JoinFrames([]addr.Addr{a}, func(_ int, h symtab.Hit, f []symtab.Frame) {
		hit, frames = h, slices.Clone(f)
	})
	return hit, frames, err
}
