package indexer

import (
	"context"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/symtab"
)

// AddFileSymbols merges the functions that a recording has of a file into a sink, under the file's
// ID, with a layout of the code that contains them. It is for a file that is not at hand: both are
// less complete than the file's own. path is the recorded path, and mapped are the recorded
// mappings of the file, which locate functions without a file offset.
func AddFileSymbols(ctx context.Context, sink store.Sink, id buildid.ID, path string,
	f *perfdata.FileSymbols, mapped []ingest.SegmentRef) error {
	start, offset, ok := placeOf(f, mapped)
	if !ok {
		return nil
	}
	b := symtab.NewBuilder(symtab.Options{})
	end := start
	for i := range f.Symbols {
		s := &f.Symbols[i]
		if s.Addr < start || s.Size == 0 || s.Addr+uint64(s.Size) < s.Addr || s.Name == "" {
			continue
		}
		b.Add(symtab.Func{Start: addr.Addr(s.Addr), Size: uint64(s.Size), Name: s.Name})
		end = max(end, s.Addr+uint64(s.Size))
	}
	if end == start {
		return nil
	}
	for _, s := range mapped { // what is after the last function is in the file, too
		last := uint64(s.Offset) + s.Len
		if (uint64(s.Offset) <= offset || offset == start) && offset < last && last < 1<<62 {
			end = max(end, start+last-offset)
		}
	}
	table, err := b.Encode()
	if err != nil {
		return err
	}
	return sink.Merge(ctx, &store.Contribution{
		Manifest: store.Manifest{ID: id, Kind: ingest.ELF, Layout: []elf.Segment{{
			Offset: addr.Offset(offset), Addr: addr.Addr(start),
			FileSize: end - start, MemSize: end - start, Flags: executableSegment}}},
		Sources: []store.NewSource{{
			Info:  store.SourceInfo{Kind: store.Symtab, Producer: Producer, Path: path + ": " + f.Path},
			Table: table,
		}},
	})
}

// placeOf returns the first address of a file's functions, and the offset in the recording's
// mappings that it has.
func placeOf(f *perfdata.FileSymbols, mapped []ingest.SegmentRef) (start, offset uint64, ok bool) {
	switch {
	case f.Kind != perfdata.FileELF, f.Compiled():
		return 0, 0, true
	case f.Placed:
		return f.Addr, f.Offset, true
	}
	segment, ok := segmentOf(f, mapped)
	return f.Addr, uint64(segment.Offset), ok
}

// segmentOf returns the segment that contains the functions of a file without an offset: the only
// one large enough, or of several the one with an offset equal to their first address, as in
// segments with equal positions in memory and in the file.
func segmentOf(f *perfdata.FileSymbols, mapped []ingest.SegmentRef) (found ingest.SegmentRef, ok bool) {
	end := f.Addr
	for i := range f.Symbols {
		if s := &f.Symbols[i]; s.Addr >= f.Addr {
			end = max(end, s.Addr+uint64(s.Size))
		}
	}
	fits := 0
	for _, s := range mapped {
		switch {
		case s.Len < end-f.Addr || fits > 0 && s.Offset == found.Offset:
		case uint64(s.Offset) == f.Addr&^(pageSize-1):
			return s, true
		default:
			found = s
			fits++
		}
	}
	return found, fits == 1
}

const pageSize = 4096

const executableSegment = 5 // PF_R | PF_X
