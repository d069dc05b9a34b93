package indexer

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/object/perfmap"
	"symbolize/store"
	"symbolize/store/symtab"
)

// JITFile is a perf map or a jitdump file, and its process.
type JITFile struct {
	Path    string
	R       io.ReaderAt
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
	id buildid.ID, m *perfmap.Map, err error) {
	m, damage := perfmap.Read(f.Path, io.NewSectionReader(f.R, 0, f.Size))
	if len(m.Symbols) == 0 {
		return id, m, noFunctions(f.Path, damage, m.FirstBad)
	}
	h := sha1.New()
	h.Write([]byte("perf map\x00"))
	if _, err := io.Copy(h, io.NewSectionReader(f.R, 0, f.Size)); err != nil {
		return id, m, fmt.Errorf("%s: %w", f.Path, err)
	}
	id = buildid.Make(buildid.JIT, h.Sum(nil))
	table, err := perfMapTable(m)
	if err != nil {
		return id, m, err
	}
	c := store.Contribution{Manifest: store.Manifest{ID: id, Kind: ingest.PerfMap}}
	return id, m, errors.Join(f.merge(ctx, sink, &c, table), damage)
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
func perfMapTable(m *perfmap.Map) (*symtab.Encoded, error) {
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
	table, bad, first, err := jitDumpTable(d)
	if err != nil {
		return id, d, err
	}
	d.BadLines, d.FirstBadLines = bad, first
	c := store.Contribution{Manifest: store.Manifest{ID: id, Kind: ingest.JITDump, Machine: d.Machine,
		BigEndian: d.BigEndian}}
	if arch := jitArch(d); arch != nil {
		c.Manifest.Machine = uint16(arch.Machine)
	}
	if rules := jitRules(d); rules != nil {
		c.Sources = append(c.Sources, store.NewSource{
			Info:  store.SourceInfo{Kind: store.Unwind, Producer: Producer, Path: f.Path},
			Table: rules,
		})
	}
	return id, d, errors.Join(f.merge(ctx, sink, &c, table), damage)
}

// jitDumpTable makes the table of a jitdump file: by offsets in it. Records of lines that make no
// sense are left out and counted.
func jitDumpTable(d *jitdump.File) (table *symtab.Encoded, bad uint64, first, err error) {
	b := symtab.NewBuilder(symtab.Options{Columns: true})
	for i := range d.Loads {
		l := &d.Loads[i]
		start := addr.Addr(l.Code)
		sub := symtab.Subprogram{Name: []byte(l.Name)}
		fn := symtab.DebugFunc{Ranges: []addr.Range{{Start: start, End: start + addr.Addr(l.Size)}}}
		lines, err := d.Lines(l)
		if err != nil {
			bad, first = bad+1, cmp.Or(first, err)
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
	table, err = b.Encode()
	return table, bad, first, err
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
	c.Sources = append(c.Sources, store.NewSource{
		Info:  store.SourceInfo{Kind: store.JIT, Producer: Producer, Path: f.Path},
		Table: table,
	})
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
