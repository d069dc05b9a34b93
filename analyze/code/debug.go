package code

import (
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// Debug returns the paths of the file with the code of an object and of one with its debug information,
// which may be the same, and its manifest; "" without the first. debug is "" if only that is missing.
func (opts *Options) Debug(o *ingest.Object) (program, debug string, m *store.Manifest) {
	if m, _, _ = store.FindOne(opts.View, o.ID); m == nil {
		return "", "", nil
	}
	for _, name := range opts.candidates(o, m) {
		runs, informs := parts(name, o)
		if runs && program == "" {
			program = name
		}
		if informs && debug == "" {
			debug = name
		}
	}
	if program == "" {
		return "", "", m
	}
	return program, debug, m
}

// parts reports whether a file has the code of an object, and whether its debug information.
func parts(name string, o *ingest.Object) (code, debug bool) {
	file, err := files.Open(name)
	if err != nil {
		return false, false
	}
	defer file.Close()
	fi, err := file.Stat()
	if err != nil {
		return false, false
	}
	f, err := elf.Open(name, file, fi.Size())
	if err != nil || !f.ID.Matches(o.ID) {
		return false, false
	}
	return f.HasCode(), f.Section(".debug_info") != nil
}
