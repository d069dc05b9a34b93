package indexer

import (
	"cmp"
	"context"
	stdelf "debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/object/elf"
)

// ErrNoDebugInfo is the error of a file without debug information.
var ErrNoDebugInfo = errors.New("no debug information")

// Variables has functions with their variables, and types, of a file.
type Variables struct {
	*dwarfvar.Info
	// Base is what addresses of debug information are above those of symbol tables.
	Base addr.Addr

	debug *debugInfo
	alts  *altFiles
}

// ReadVariables reads the variables and types that o selects of a file, which r reads, with the files
// that its debug information refers to, as Index finds them. Addresses of o are those of symbol tables.
// The result reads from r until it is closed.
func ReadVariables(ctx context.Context, path string, r io.ReaderAt, f *elf.File, opts Options,
	o dwarfvar.Options) (*Variables, error) {
	if !hasDWARF(f) {
		return nil, fmt.Errorf("%s: %w", path, ErrNoDebugInfo)
	}
	v := &Variables{}
	switch {
	case f.Type == stdelf.ET_REL:
		v.Base = moduleBase
	case f.IsKernelImage():
		refs, err := f.RefSymbols()
		at := slices.IndexFunc(refs, func(r elf.RefSymbol) bool { return r.Name == "_text" })
		if at < 0 {
			return nil, cmp.Or(err, errNoText)
		}
		v.Base = refs[at].Addr
	}
	o.Addrs = slices.Clone(o.Addrs)
	for i := range o.Addrs {
		o.Addrs[i] += v.Base
	}
	opts.Workers = max(opts.Workers, 1)
	ix := &index{ctx: ctx, opts: opts}
	v.alts = &ix.alts
	s := sources{w: &worker{ix: ix, reads: new(files.Reads)}, path: path, data: r, variables: true}
	var err error
	if v.debug, err = s.openDebug(f); err != nil {
		v.alts.close()
		return nil, err
	}
	v.debug.settle(losses{}) // .debug_info must be whole
	if v.Info, err = dwarfvar.Read(ctx, v.debug.data, &o); err != nil {
		if errors.Is(err, dwarf.ErrChanged) {
			err = errChanged
		}
		if v.Info == nil {
			return nil, errors.Join(err, v.Close())
		}
	}
	return v, err
}

// Incomplete returns the error of parts of the debug information that could not be read or found, nil if
// there are none.
func (v *Variables) Incomplete() error {
	lost := v.debug.lost
	problems, n := v.Problems()
	if len(problems) > 0 {
		lost.join(losses{n, problems[0]})
	}
	if first := v.debug.related.missing.first; first != nil {
		lost.first = first
	}
	return lost.err()
}

// Close closes the files that belong to the debug information.
func (v *Variables) Close() error {
	var err error
	if v.Info != nil {
		err = v.Info.Close()
	}
	v.debug.close()
	v.alts.close()
	return err
}
