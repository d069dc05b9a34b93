package indexer

import (
	"symbolize/ingest/files"
	"symbolize/ingest/object/calls"
	"symbolize/ingest/object/elf"
)

// FileCalls returns the calls of a file that runs, with its PT_LOAD segments; nil if it is not of a
// machine whose calls are known.
func FileCalls(path string) (t *calls.Table, segments []elf.Segment, err error) {
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
	s := &sources{w: &worker{}, path: path, data: f, size: fi.Size()}
	rules := s.unwindRules(ef, true)
	if rules == nil {
		return nil, nil, nil
	}
	opts := calls.Options{}
	if table, _ := s.goTable(ef); table != nil {
		opts.GoText = table.Text()
	}
	t, err = calls.Read(ef, rules, opts)
	return t, ef.Segments, err
}
