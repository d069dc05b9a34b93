package indexer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/datatype"
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

	// Frames opens the files with the unwind tables that CFA reads, the file of the debug information among them.
	Frames func() []*elf.File

	debug   *debugInfo
	done    func()
	read    bool // frames and extents, which CFA needs
	frames  []cfi.CFA
	extents []addr.Range // that frames are for

	types *btf.Types // of BTF: Info is nil then
	funcs []dwarfvar.Function
}

// FromBTF reports whether the functions are those of BTF: parameters are known at the entry only.
func (v *Variables) FromBTF() bool { return v.Info == nil }

// Types returns the types.
func (v *Variables) Types() *btf.Types {
	if v.FromBTF() {
		return v.types
	}
	return v.Info.Types()
}

// Len returns the number of selected functions.
func (v *Variables) Len() int {
	if v.FromBTF() {
		return len(v.funcs)
	}
	return v.Info.Len()
}

// Function reads function i.
func (v *Variables) Function(i int) (*dwarfvar.Function, error) {
	if v.FromBTF() {
		return &v.funcs[i], nil
	}
	return v.Info.Function(i)
}

// FunctionAt reads the innermost selected function that contains an address, nil if there is none.
func (v *Variables) FunctionAt(a addr.Addr) (*dwarfvar.Function, error) {
	if !v.FromBTF() {
		return v.Info.FunctionAt(a)
	}
	for i := range v.funcs {
		if v.funcs[i].Ranges[0].Contains(a) {
			return &v.funcs[i], nil
		}
	}
	return nil, nil
}

// readBTFVariables reads the functions of a kernel or module from its BTF.
func readBTFVariables(f *elf.File, o *dwarfvar.Options) (*Variables, error) {
	types, err := readBTF(f, nil)
	if err != nil {
		return nil, err
	}
	base, err := tableBase(f)
	if err != nil {
		return nil, err
	}
	v := &Variables{Base: base, types: types, done: func() {}}
	v.funcs, err = datatype.Functions(f, types, base)
	v.funcs = slices.DeleteFunc(v.funcs, func(x dwarfvar.Function) bool {
		return !slices.Contains(o.Names, x.Name) &&
			!slices.ContainsFunc(o.Addrs, func(a addr.Addr) bool { return x.Ranges[0].Contains(a + base) })
	})
	return v, err
}

// ReadVariables reads the variables and types that o selects of a file, which r reads, with the files
// that its debug information refers to, as Index finds them; of a kernel or module without debug information its
// BTF. Addresses of o are those of symbol tables.
// The result reads from r until it is closed.
func ReadVariables(ctx context.Context, path string, r io.ReaderAt, f *elf.File,
	o dwarfvar.Options) (*Variables, error) {
	if !hasDWARF(f) && f.Section(".BTF") != nil && (f.IsKernelImage() || f.IsModule()) {
		return readBTFVariables(f, &o)
	}
	if !hasDWARF(f) {
		return nil, fmt.Errorf("%s: %w", path, ErrNoDebugInfo)
	}
	base, err := tableBase(f)
	if err != nil {
		return nil, err
	}
	v := &Variables{Base: base}
	o.Addrs = slices.Clone(o.Addrs)
	for i := range o.Addrs {
		o.Addrs[i] += v.Base
	}
	w, done := lone(ctx)
	v.done = done
	s := sources{w: w, path: path, data: r, variables: true}
	if v.debug, err = s.openDebug(f); err != nil {
		done()
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

// CFA returns where the canonical frame address is at an address of debug information: a register, with DWARF's number,
// and the distance from its value. ok is false if no unwind table has it so.
func (v *Variables) CFA(a addr.Addr) (reg uint16, off int64, ok bool) {
	if !v.read {
		v.readFrames()
		v.read = true
	}
	if !slices.ContainsFunc(v.extents, func(r addr.Range) bool { return r.Contains(a) }) {
		return 0, 0, false
	}
	i := sort.Search(len(v.frames), func(i int) bool { return v.frames[i].At > a })
	if i == 0 || v.frames[i-1].Reg == cfi.NoRegister {
		return 0, 0, false
	}
	return uint16(v.frames[i-1].Reg), v.frames[i-1].Off, true
}

// readFrames reads the unwind tables of Frames.
func (v *Variables) readFrames() {
	if v.Frames == nil {
		return
	}
	files := v.Frames()
	if len(files) == 0 || cfi.ArchOf(files[0].Machine) == nil {
		return
	}
	b := cfi.NewBuilder(cfi.ArchOf(files[0].Machine))
	for _, find := range []func(*elf.File) (*cfi.EHFrame, error){cfi.FindEHFrame, cfi.FindDebugFrame} {
		for _, f := range files {
			if s, err := find(f); err == nil && s != nil && !f.IsModule() {
				_, _ = s.Rules(b) // functions without rules have fewer places
				b.NextSource()
			}
		}
	}
	v.frames = b.CFAs()
	b.Ranges(func(r addr.Range) { v.extents = append(v.extents, r) })
}

// Incomplete returns the error of parts of the debug information that could not be read or found, nil if
// there are none.
func (v *Variables) Incomplete() error {
	if v.FromBTF() {
		return nil
	}
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
	if v.debug != nil {
		v.debug.close()
	}
	v.done()
	return err
}
