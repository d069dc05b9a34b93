package bpfprog

import (
	"context"
	stdelf "debug/elf"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
	"symbolize/store"
)

// Limits of AddBCC's input.
const (
	maxBCCPrograms = 1 << 16
	maxBCCName     = 511 // bytes; KSYM_NAME_LEN less the final 0
	maxBCCProblems = 20
)

// bcc's names of the files of a program (BPFModule::annotate_prog_tag in
// src/cc/bpf_module.cc): NAME.c has the source of the function, NAME.rewritten.c the
// source that bcc made of it, NAME.dis.txt its BPF instructions.
const (
	bccSource    = ".c"
	bccRewritten = ".rewritten.c"
)

// BCCStats counts the results of AddBCC.
type BCCStats struct {
	Programs int
	Problems []error // of left out programs, capped
}

// AddBCC merges the programs that bcc left in a directory, bpf_prog_TAG/NAME.c for each,
// into a sink, each under its tag. The tag there is not padded with zeros. The error is
// the directory's, the sink's or the context's.
func AddBCC(ctx context.Context, sink store.Sink, dir string) (*BCCStats, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("programs of bcc: %w", err)
	}
	stats := &BCCStats{}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), bpf.SymbolPrefix)
		if !ok || !e.IsDir() {
			continue
		}
		n, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			stats.problem(fmt.Errorf("%s: no tag in its name", filepath.Join(dir, e.Name())))
			continue
		}
		var tag bpf.Tag
		for i := range tag {
			tag[i] = byte(n >> (56 - 8*i))
		}
		if stats.Programs >= maxBCCPrograms {
			stats.problem(fmt.Errorf("%s: more than %d programs", dir, maxBCCPrograms))
			break
		}
		if err := addBCCProgram(ctx, sink, filepath.Join(dir, e.Name()), tag, stats); err != nil {
			return stats, err
		}
	}
	return stats, nil
}

func (s *BCCStats) problem(err error) {
	if len(s.Problems) < maxBCCProblems {
		s.Problems = append(s.Problems, err)
	}
}

// addBCCProgram merges the files in the directory of one tag.
func addBCCProgram(ctx context.Context, sink store.Sink, dir string, tag bpf.Tag,
	stats *BCCStats) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		stats.problem(err)
		return nil
	}
	sources := make(map[string]string) // by function
	for _, f := range files {
		if !f.Type().IsRegular() {
			continue
		}
		if name, ok := strings.CutSuffix(f.Name(), bccRewritten); ok {
			if sources[name] == "" {
				sources[name] = f.Name()
			}
		} else if name, ok := strings.CutSuffix(f.Name(), bccSource); ok {
			sources[name] = f.Name() // as it was written
		}
	}
	if len(sources) == 0 {
		stats.problem(fmt.Errorf("%s: no source in it", dir))
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		path := filepath.Join(dir, sources[name])
		if name == "" || len(name) > maxBCCName {
			stats.problem(fmt.Errorf("%s: no name of a function", path))
			continue
		}
		err := mergeBCC(ctx, sink, name, path, tag)
		if errors.Is(err, store.ErrTooLarge) || errors.Is(err, errSource) {
			stats.problem(err)
			continue
		}
		if err != nil {
			return err
		}
		stats.Programs++
	}
	return nil
}

// mergeBCC merges one program. Its length is not recorded. A file without the function's
// name, which is a macro's then, has it from the first line on.
func mergeBCC(ctx context.Context, sink store.Sink, name, path string, tag bpf.Tag) error {
	line, err := definedAt(path, name)
	if err != nil {
		return err
	}
	p := bpf.Program{Tag: tag, Funcs: []bpf.Func{{Name: name, Tag: tag, Length: bpf.InsnSize,
		Lines: []bpf.Line{{Line: max(line, 1), File: path}}}}}
	table, err := LineTable(name, &p.Funcs[0])
	if err != nil {
		return err
	}
	m := store.Manifest{ID: p.Identity(0, Machine), Kind: ingest.JIT,
		Machine: uint16(stdelf.EM_BPF), Class: uint8(stdelf.ELFCLASS64)}
	err = sink.Merge(ctx, &store.Contribution{Manifest: m,
		Sources: []store.NewSource{store.SourceOf(store.JIT, path, table)}})
	if err != nil {
		return err
	}
	return sink.Merge(ctx, Alias(bpf.TagIdentity(tag), m.ID))
}
