package indexer

import (
	"symbolize/ingest/files"
	"symbolize/ingest/object/calls"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/calltab"
)

// FileCalls returns the calls of a file that runs, with its PT_LOAD segments; nil if it is not of a
// machine whose calls are known.
func FileCalls(path string) (t *calltab.Table, segments []elf.Segment, err error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, nil, pathReason(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, nil, pathReason(err)
	}
	ef, err := elf.Open(path, f, fi.Size())
	if err != nil || !isRuntime(ef) {
		return nil, nil, err
	}
	s := &sources{w: &fileReader{}, path: path, data: f, size: fi.Size()}
	rules := s.unwindRules(ef, true)
	if rules == nil {
		return nil, nil, nil
	}
	found, err := s.calls(ef, rules)
	if err != nil || found == nil {
		return nil, nil, err
	}
	encoded := calltab.Encode(found)
	if encoded == nil {
		return nil, nil, nil
	}
	t, err = calltab.Open(encoded.Header, encoded)
	return t, ef.Segments, err
}

// calls reads the calls of a file with these rules.
func (s *sources) calls(f *elf.File, rules *cfi.Builder) (*calls.Table, error) {
	opts := calls.Options{}
	if table, _ := s.goTable(f); table != nil {
		opts.GoText = table.Text()
	}
	return calls.Read(f, rules, opts)
}

// callTable adds the table of calls.
func (s *sources) callTable(f *elf.File, rules *cfi.Builder) {
	t, err := s.calls(f, rules)
	if err != nil {
		s.fail(incompleteError(err.Error()))
	}
	if t == nil {
		return
	}
	if table := calltab.Encode(t); table != nil {
		s.c.Sources = append(s.c.Sources, store.SourceOf(store.Calls, s.path, table))
	}
}
