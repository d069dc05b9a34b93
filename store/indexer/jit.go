package indexer

import (
	"cmp"
	"context"
	"crypto/sha1"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/input"
	"symbolize/ingest/input/container"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/sideband"
	"symbolize/store"
	"symbolize/store/symtab"
	"symbolize/store/unwindtab"
)

// JITFile is a perf map or a jitdump file, and its process.
type JITFile struct {
	Path    string
	R       io.ReaderAt
	Reads   *files.Reads // has the errors of R; nil: they are not noted
	Size    int64
	PID     int32  // by the file's name, or its header
	Host    string // of the process; "" if not known
	Written int64  // when the file was written last, ns since 1970; 0 if not known
	// Process is the identity of the process (sideband.ProcessIdentity); zero if only its number
	// is known.
	Process buildid.ID
}

// AddPerfMap merges a perf map into a sink, under the hash of its content, with the text itself as
// blobs. Map is its content: beside an error, all before it.
func AddPerfMap(ctx context.Context, sink store.Sink, f *JITFile) (
	id buildid.ID, m *symlist.PerfMap, err error) {
	m, damage := symlist.ReadPerfMap(f.Path, io.NewSectionReader(f.R, 0, f.Size))
	if len(m.Symbols) == 0 {
		return id, m, noFunctions(f.Path, damage, m.FirstBad)
	}
	h := sha1.New()
	h.Write([]byte("perf map\x00"))
	if _, err := io.Copy(h, io.NewSectionReader(f.R, 0, f.Size)); err != nil {
		return id, m, fmt.Errorf("%s: %w", f.Path, err)
	}
	id = buildid.Make(buildid.JIT, h.Sum(nil))
	c := store.Contribution{Manifest: store.Manifest{ID: id, Kind: ingest.PerfMap}}
	return id, m, errors.Join(f.merge(ctx, sink, &c, perfMapTable(m)), damage)
}

// noFunctions is the error of a file without one.
func noFunctions(path string, damage, bad error) error {
	if damage = errors.Join(damage, bad); damage != nil {
		return damage
	}
	return fmt.Errorf("%s: it lists no function", path)
}

// perfMapTable makes the table of a perf map: by addresses of the process. Of a function that a
// later one has cut the rest counts as one of its own.
func perfMapTable(m *symlist.PerfMap) *symtab.Encoded {
	b := symtab.NewBuilder(symtab.Options{})
	for i := 0; i < len(m.Symbols); {
		s, end := &m.Symbols[i], m.Symbols[i].End
		for i++; i < len(m.Symbols); i++ {
			next := &m.Symbols[i]
			if next.Start != end || next.Function != s.Function || next.Name != s.Name {
				break
			}
			end = next.End
		}
		b.Add(symtab.Func{Start: s.Start, Size: uint64(end - s.Start), Name: s.Name})
	}
	return b.Encode()
}

// AddJITDump merges a jitdump file into a sink, under its Identity, with the file itself as blobs.
// File is its content: beside an error, all before it.
func AddJITDump(ctx context.Context, sink store.Sink, f *JITFile) (
	id buildid.ID, d *jitdump.File, err error) {
	d, damage := jitdump.Open(f.Path, f.R, f.Size)
	if d == nil {
		return id, nil, damage
	}
	if f.PID == 0 {
		f.PID = d.PID
	}
	if id, err = d.Identity(); err != nil || id.IsZero() {
		return id, d, errors.Join(err, noFunctions(f.Path, damage, d.FirstBad))
	}
	table := jitDumpTable(d)
	c := store.Contribution{Manifest: store.Manifest{ID: id, Kind: ingest.JITDump, Machine: d.Machine,
		BigEndian: d.BigEndian}}
	if arch := jitArch(d); arch != nil {
		c.Manifest.Machine = uint16(arch.ELF)
	}
	if rules := jitRules(d); rules != nil {
		c.Sources = append(c.Sources, store.SourceOf(store.Unwind, f.Path, rules))
	}
	return id, d, errors.Join(f.merge(ctx, sink, &c, table), damage)
}

// jitDumpTable makes the table of a jitdump file: by offsets in it. Records of lines that make no
// sense are left out and counted in d.
func jitDumpTable(d *jitdump.File) *symtab.Encoded {
	b := symtab.NewBuilder(symtab.Options{Columns: true})
	for i := range d.Loads {
		l := &d.Loads[i]
		start := addr.Addr(l.Code)
		sub := symtab.Subprogram{Name: []byte(l.Name)}
		fn := symtab.DebugFunc{Ranges: []addr.Range{{Start: start, End: start + addr.Addr(l.Size)}}}
		lines, err := d.Lines(l)
		if err != nil {
			d.BadLines, d.FirstBadLines = d.BadLines+1, cmp.Or(d.FirstBadLines, err)
		}
		for _, line := range lines {
			file := b.File([]byte(line.File))
			if sub.Line == 0 {
				sub.File, sub.Line = file, line.Line
			}
			fn.Lines = append(fn.Lines, symtab.Line{Addr: start + addr.Addr(line.Offset),
				File: file, Line: line.Line, Column: line.Column})
		}
		fn.Sub = b.Sub(sub)
		b.AddFunction(&fn)
	}
	return b.Encode()
}

// Pieces of the kept files. The first of a file's bytes is Variant.Func MiB from its beginning.
const (
	jitPiece    = 8 << 20
	jitUnit     = 1 << 20
	maxJITBytes = store.MaxImages * jitPiece * 3 / 4 // some space for the file's growth
)

// merge merges a contribution with the file's table and its pieces, and enters its process.
func (f *JITFile) merge(ctx context.Context, sink store.Sink, c *store.Contribution,
	table *symtab.Encoded) error {
	kept := f.Size
	if kept > maxJITBytes {
		return fmt.Errorf("%s: %w: %d MiB, at most %d", f.Path, store.ErrTooLarge, kept>>20,
			maxJITBytes>>20)
	}
	if err := f.Reads.Err(); err != nil { // the table may lack functions
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	host := f.Host[:min(len(f.Host), store.MaxBootID)]
	for at := int64(0); at < f.Size; at += jitPiece {
		b := make([]byte, min(jitPiece, f.Size-at))
		if _, err := f.R.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		blob, err := sink.PutBlob(ctx, b)
		if err != nil {
			return err
		}
		c.Manifest.Variants = append(c.Manifest.Variants, store.Variant{Image: blob, Entry: blob,
			Size: uint32(len(b)), Func: uint32(at / jitUnit), BootID: host,
			Load: uint64(max(f.Written, 0)), Program: uint32(f.PID)})
	}
	c.Sources = append(c.Sources, store.SourceOf(store.JIT, f.Path, table))
	if err := sink.Merge(ctx, c); err != nil {
		return err
	}
	m := store.Manifest{ID: JITAlias(c.Manifest.Kind, f.Process, f.PID), Kind: c.Manifest.Kind,
		Probable: []buildid.ID{c.Manifest.ID}}
	return sink.Merge(ctx, &store.Contribution{Manifest: m})
}

// JITAlias returns the ID of an object that lists in Probable the perf maps, or the jitdump files,
// of a process: by its identity, or if that is zero of all processes with its number.
func JITAlias(kind ingest.ObjectKind, process buildid.ID, pid int32) buildid.ID {
	sum := sha1.Sum(fmt.Appendf(nil, "%s of process\x00%s\x00%d", kind, process, pid))
	return buildid.Make(buildid.JIT, sum[:])
}

// jitRules makes the unwind table of a jitdump file: by offsets in it, as its symbol table. nil if
// no function has rules. Functions with invalid rules, or rules for other code, are counted.
func jitRules(d *jitdump.File) *symtab.Encoded {
	arch := jitArch(d)
	if arch == nil || d.BigEndian {
		return nil
	}
	b := cfi.NewBuilder(arch)
	for i := range d.Loads {
		if err := loadRules(b, d, &d.Loads[i]); err != nil {
			d.BadRules, d.FirstBadRules = d.BadRules+1, cmp.Or(d.FirstBadRules, err)
		}
	}
	if b.Funcs() == 0 {
		return nil
	}
	return unwindtab.Encode(b)
}

// jitArch returns the machine of a file. CPython 3.13 leaves the header's field 0: the first rules
// have it then.
func jitArch(d *jitdump.File) *machine.Arch {
	if d.Machine != uint16(elf.EM_NONE) {
		return cfi.ArchOf(elf.Machine(d.Machine))
	}
	for i := range d.Loads {
		if data, at, err := d.Frames(&d.Loads[i]); err == nil && data != nil {
			if a := (&cfi.EHFrame{Name: d.Name, Data: data, Offset: at}).Arch(); a != nil {
				return a
			}
		}
	}
	return nil
}

// loadRules adds the rules of a function.
func loadRules(b *cfi.Builder, d *jitdump.File, l *jitdump.Load) error {
	data, at, err := d.Frames(l)
	if err != nil || data == nil {
		return err
	}
	code := addr.Range{Start: addr.Addr(l.Code), End: addr.Addr(l.Code) + addr.Addr(l.Size)}
	s := &cfi.EHFrame{Name: d.Name, Data: data, Offset: at, Class64: b.Arch.Word == 8,
		Addr: code.Start + addr.Addr(l.Size+7)&^7}
	outside := false
	_, err = s.Frames(func(f cfi.CodeRange) bool {
		outside = f.Start < code.Start || f.End > code.End
		return !outside
	})
	if outside {
		return fmt.Errorf("%s: offset %#x: unwinding information of other code than its function's", d.Name, at)
	}
	if err != nil {
		return err
	}
	_, err = s.Rules(b)
	return err
}

// countingSink is the sink of an index run; it counts objects for the summary.
type countingSink struct {
	store.Sink
	ix    *index
	count bool
}

// Merge implements store.Sink.
func (s countingSink) Merge(ctx context.Context, c *store.Contribution) error {
	if len(c.Sources) == 0 {
		return s.Sink.Merge(ctx, c)
	}
	return s.ix.merge(c, s.count)
}

var errNoProcess = errors.New("its name must have the process: perf-PID.map")

// readJIT reads a perf map or a jitdump file. Its process is known only by its number.
func (w *fileReader) readJIT(t *fileTask, data io.ReaderAt, count bool) fileResult {
	file := JITFile{Path: t.path, R: data, Reads: w.reads, Size: int64(t.st.size), Written: t.st.mtime}
	dump := t.class == container.TypeJITDump
	if !dump {
		var ok bool
		if file.PID, ok = symlist.PerfMapPID(t.path); !ok {
			return damagedFile(errNoProcess)
		}
	}
	id, err := w.mergeJIT(&file, dump, count)
	switch {
	case w.ix.ctx.Err() != nil:
		return fileResult{again: true}
	case errors.Is(err, store.ErrTooLarge):
		return notMerged(err)
	case err != nil:
		res := damagedFile(err)
		res.id = id
		return res
	}
	if count {
		w.ix.count(func(s *Summary) {
			s.Read++
			s.Raw += t.st.size
			s.JIT++
		})
	}
	return fileResult{id: id}
}

// mergeJIT merges a perf map or a jitdump file into the sink of the run.
func (w *fileReader) mergeJIT(f *JITFile, dump, count bool) (buildid.ID, error) {
	sink, err := w.ix.openSink()
	if err != nil {
		return buildid.ID{}, err
	}
	hold, err := w.ix.budget.Acquire(w.ix.ctx, jitCost*f.Size)
	if err != nil {
		return buildid.ID{}, err // the context has ended
	}
	defer w.ix.budget.Release(hold)
	id, bad, err := f.add(w.ix.ctx, countingSink{sink, w.ix, count}, dump)
	return id, cmp.Or(err, bad)
}

// jitCost is the working memory per byte of a list of code.
const jitCost = 3

// add merges a file into a sink. bad is the first of its lines or records that is left out.
func (f *JITFile) add(ctx context.Context, sink store.Sink, dump bool) (
	id buildid.ID, bad, err error) {
	if !dump {
		id, m, err := AddPerfMap(ctx, sink, f)
		return id, m.FirstBad, err
	}
	id, d, err := AddJITDump(ctx, sink, f)
	if d == nil {
		return id, nil, err
	}
	return id, d.FirstBad, err
}

// AddJITFile merges a perf map or jitdump file, by its content, that is proven to be of a process.
func AddJITFile(ctx context.Context, sink store.Sink, path, host string, pid int32,
	process buildid.ID) error {
	r, err := files.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil {
		return err
	}
	var reads files.Reads
	f := JITFile{Path: path, R: reads.Of(r), Reads: &reads, Size: fi.Size(), PID: pid, Host: host,
		Written: fi.ModTime().UnixNano(), Process: process}
	class, err := container.TypeOf(path, f.R, f.Size)
	if err == nil {
		_, _, err = f.add(ctx, sink, class == container.TypeJITDump)
	}
	return err
}

// BundledFile is a perf map or a jitdump file in a capture bundle, for Options.Bundled.
type BundledFile struct {
	JITFile
	dump bool
}

// BundledFiles returns the perf maps and jitdump files of the bundles among captures, valid until
// these are closed, and the facts about them that cannot be read.
func BundledFiles(captures []*input.Capture) (list []*BundledFile, problems []Problem) {
	for _, c := range captures {
		b := c.Bundle()
		if b == nil {
			continue
		}
		for _, name := range b.Names() {
			f, err := bundledFile(b, name)
			if err != nil {
				problems = append(problems, Problem{Path: b.Name, Err: err})
			}
			if f != nil {
				list = append(list, f)
			}
		}
	}
	return list, problems
}

// bundledFile returns the file that an entry is; nil for other entries.
func bundledFile(b *bundle.Bundle, name string) (*BundledFile, error) {
	pid, ok := bundle.PerfMapPID(name)
	dump := false
	if !ok {
		if pid, dump = bundle.JITDumpPID(name); !dump {
			return nil, nil
		}
	}
	r, size, err := b.Entry(name)
	if err != nil {
		return nil, err
	}
	host := b.Manifest.Host
	f := &BundledFile{dump: dump, JITFile: JITFile{Path: b.Name + ": " + name, R: r, Size: size,
		PID: pid, Host: host, Written: int64(b.Manifest.End.Realtime)}}
	c, err := b.Compiled(pid)
	of := c.PerfMap
	if dump {
		of = c.JITDump
	}
	if of != nil {
		f.Written = int64(of.Written)
	}
	f.Process = sideband.ProcessIdentity(host, pid, addr.PC(c.VDSO))
	return f, err
}

// bundled indexes a perf map or a jitdump file of a bundle.
func (w *fileReader) bundled(f *BundledFile) {
	_, err := w.mergeJIT(&f.JITFile, f.dump, true)
	if w.ix.ctx.Err() != nil {
		return
	}
	if err != nil {
		w.ix.problem(Problem{Path: f.Path, Err: err})
	}
	w.ix.count(func(s *Summary) { s.JIT++ })
}

// StoredJITFile returns the perf map or jitdump file that an object was made of. Of several
// readings of a file that grew it has the longest. The file is read as it is needed.
func StoredJITFile(m *store.Manifest, blob func(store.BlobID) ([]byte, error)) (*JITFile, error) {
	s := &jitPieces{blob: blob, at: -1}
	f := &JITFile{R: s}
	pieces := slices.Clone(m.Variants)
	slices.SortFunc(pieces, func(a, b store.Variant) int {
		return cmp.Or(cmp.Compare(a.Func, b.Func), cmp.Compare(b.Size, a.Size), store.CompareVariants(a, b))
	})
	for i := range pieces {
		v := &pieces[i]
		f.Written = max(f.Written, int64(v.Load))
		switch at := int64(v.Func) * jitUnit; {
		case at < f.Size: // a shorter reading of the piece before
		case at > f.Size:
			return nil, fmt.Errorf("object %s: %w: bytes from %#x on", m.ID, store.ErrNotFound, f.Size)
		default:
			s.pieces = append(s.pieces, *v)
			f.Size += int64(v.Size)
		}
	}
	if len(pieces) > 0 {
		f.PID, f.Host = int32(pieces[0].Program), pieces[0].BootID
	}
	if len(m.Sources) > 0 {
		f.Path = m.Sources[0].Path
	}
	return f, nil
}

// jitPieces reads a kept file. It holds one piece at a time.
type jitPieces struct {
	blob   func(store.BlobID) ([]byte, error)
	pieces []store.Variant // one after another, all but the last of the same size

	mu   sync.Mutex
	at   int // piece that is held, -1 for none
	held []byte
}

// ReadAt implements io.ReaderAt.
func (s *jitPieces) ReadAt(b []byte, off int64) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(b) {
		i := int((off + int64(n)) / jitPiece)
		if i >= len(s.pieces) {
			return n, io.EOF
		}
		if i != s.at {
			if s.held, err = s.blob(s.pieces[i].Entry); err != nil {
				return n, err
			}
			s.at = i
		}
		rest := off + int64(n) - int64(i)*jitPiece
		if rest >= int64(len(s.held)) {
			return n, io.EOF
		}
		n += copy(b[n:], s.held[rest:])
	}
	return n, nil
}

// RebuildJITFile makes the table of a kept perf map or jitdump file anew, for
// db.RebuildOptions.
func RebuildJITFile(m *store.Manifest, blob func(store.BlobID) ([]byte, error)) (
	*symtab.Encoded, error) {
	f, err := StoredJITFile(m, blob)
	if err != nil {
		return nil, err
	}
	if m.Kind == ingest.JITDump {
		d, err := jitdump.Open(f.Path, f.R, f.Size)
		if d == nil {
			return nil, err
		}
		return jitDumpTable(d), nil // damaged parts were left out before, too
	}
	p, err := symlist.ReadPerfMap(f.Path, io.NewSectionReader(f.R, 0, f.Size))
	if err != nil && len(p.Symbols) == 0 {
		return nil, err
	}
	return perfMapTable(p), nil
}
