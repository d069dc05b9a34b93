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

// AddFileSymbols merges the functions that a recording has of an ELF file into a sink, under the
// file's build ID, with a layout of the code that they lie in. It is for a file that is not at
// hand: neither is as complete as the file's own. path is that of the recording.
func AddFileSymbols(ctx context.Context, sink store.Sink, id buildid.ID, path string,
	f *perfdata.FileSymbols) error {
	b := symtab.NewBuilder(symtab.Options{})
	end := f.Addr
	for i := range f.Symbols {
		s := &f.Symbols[i]
		if s.Addr < f.Addr || s.Size == 0 || s.Addr+uint64(s.Size) < s.Addr || s.Name == "" {
			continue
		}
		b.Add(symtab.Func{Start: addr.Addr(s.Addr), Size: uint64(s.Size), Name: s.Name})
		end = max(end, s.Addr+uint64(s.Size))
	}
	if end == f.Addr {
		return nil
	}
	table, err := b.Encode()
	if err != nil {
		return err
	}
	return sink.Merge(ctx, &store.Contribution{
		Manifest: store.Manifest{ID: id, Kind: ingest.ELF, Layout: []elf.Segment{{
			Offset: addr.Offset(f.Offset), Addr: addr.Addr(f.Addr),
			FileSize: end - f.Addr, MemSize: end - f.Addr, Flags: executableSegment}}},
		Sources: []store.NewSource{{
			Info:  store.SourceInfo{Kind: store.Symtab, Producer: Producer, Path: path + ": " + f.Path},
			Table: table,
		}},
	})
}

const executableSegment = 5 // PF_R | PF_X
