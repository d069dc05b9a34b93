package indexer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/symlist"
	"symbolize/store"
	"symbolize/store/symtab"
)

// lastSymbol is how far the last symbol of a list reaches, without a next one: to the end of
// the page after its own, as perf has it (symbols__fixup_end in tools/perf/util/symbol.c).
const lastSymbol = 4096

var errNoText = errors.New("no symbol _text: addresses cannot be separated from the load address")

// kernelSyms are the symbols of a kernel or of one module, by address.
type kernelSyms []symlist.KernelSymbol

// sort orders by address and keeps the order of the text among equals: it decides which alias perf
// shows, see symtab.Builder.
func (k kernelSyms) sort() {
	symlist.SortKernelSymbols(k)
}

// fill adds the code symbols to b, with addresses relative to base. A symbol ends where the next
// one of any type begins.
func (k kernelSyms) fill(b *symtab.Builder, base uint64) {
	for i := range k {
		s := &k[i]
		if s.Addr < base || s.Addr-base >= rawBase || !s.IsCode() {
			continue
		}
		j := i + 1
		for j < len(k) && k[j].Addr == s.Addr {
			j++
		}
		end := (s.Addr + 2*lastSymbol - 1) &^ (lastSymbol - 1)
		if j < len(k) {
			end = k[j].Addr
		}
		if end <= s.Addr {
			continue
		}
		f := symtab.Func{
			Start: addr.Addr(s.Addr - base), Size: end - s.Addr, Name: s.Name,
			Flags: symtab.Unsized,
		}
		switch s.Type {
		case 'w', 't': // perf treats `w` as local, too
			f.Flags |= symtab.Local
		case 'W':
			f.Flags |= symtab.Weak
		}
		b.Add(f)
	}
}

// rawBase is where the text of a captured input puts the object: the same after every boot, and not
// 0, because kallsyms has that for hidden addresses.
const rawBase = 1 << 63

// text returns the symbols in the form of /proc/kallsyms, with rawBase for base.
func (k kernelSyms) text(base uint64) []byte {
	var out bytes.Buffer
	out.Grow(len(k) * 40)
	line := make([]byte, 0, 128)
	for i := range k {
		if k[i].Addr < base || k[i].Addr-base >= rawBase {
			continue
		}
		line = line[:0]
		line = strconv.AppendUint(line, rawBase|(k[i].Addr-base), 16)
		line = append(line, ' ', k[i].Type, ' ')
		line = append(line, k[i].Name...)
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

// refSymbols are origins of kernel addresses in captures, besides _text.
var refSymbols = []string{"_stext"}

// base finds _text, and the other reference symbols relative to it.
func (k kernelSyms) base() (base uint64, refs []store.RefSymbol, err error) {
	found := false
	for i := range k {
		if k[i].Name == "_text" {
			base, found = k[i].Addr, true
			break
		}
	}
	if !found {
		return 0, nil, errNoText
	}
	for i := range k {
		if slices.Contains(refSymbols, k[i].Name) && k[i].Addr >= base {
			refs = append(refs, store.RefSymbol{Name: k[i].Name, Addr: addr.Addr(k[i].Addr - base)})
		}
	}
	return base, refs, nil
}

// kallsymsSource makes the source of a list of symbols, the text kept with it.
func (w *fileReader) kallsymsSource(k kernelSyms, base uint64, path string,
	m *store.Manifest) store.NewSource {
	b := w.acquireBuilder()
	defer w.releaseBuilder()
	b.Only(w.ix.only(m))
	k.fill(b, base)
	src := store.SourceOf(store.Kallsyms, path, b.Encode())
	src.Raw = k.text(base)
	return src
}

// addKernel adds a kernel's own symbols to its contribution.
func (w *fileReader) addKernel(c *store.Contribution, k kernelSyms, path string) error {
	base, refs, err := k.base()
	if err != nil {
		return err
	}
	c.Manifest.RefSyms = refs
	c.Sources = []store.NewSource{w.kallsymsSource(k, base, path, &c.Manifest)}
	return nil
}

// splitKallsyms reads a kallsyms text into the kernel's symbols and its modules' symbols.
func splitKallsyms(name string, r io.Reader) (
	kernel kernelSyms, modules map[string]kernelSyms, err error) {
	modules = make(map[string]kernelSyms)
	err = symlist.ReadKallsyms(name, r, func(s symlist.KernelSymbol) bool {
		if s.Module == "" {
			kernel = append(kernel, s)
		} else {
			modules[s.Module] = append(modules[s.Module], s)
		}
		return true
	})
	kernel.sort()
	return kernel, modules, err
}

// kallsymsID finds the build ID of a kept kallsyms text: the name of its directory, as in perf's
// cache; a copy of /sys/kernel/notes beside it; or the user's.
func (w *fileReader) kallsymsID(path string) buildid.ID {
	if w.ix.opts.KallsymsForced {
		return w.ix.opts.KallsymsID
	}
	if id := buildid.OfDir(path); !id.IsZero() {
		return id
	}
	id, err := notesID(filepath.Join(filepath.Dir(path), "notes"))
	if err == nil {
		return id
	}
	w.reads.Note(err)
	return w.ix.opts.KallsymsID
}

// readKallsyms reads a kept kallsyms text of size bytes. Only the kernel's own symbols are of use: the
// text does not have the modules' build IDs.
func (w *fileReader) readKallsyms(t *fileTask, data io.ReaderAt, size int64, count bool) fileResult {
	id := w.kallsymsID(t.path)
	if id.IsZero() {
		res := fileResult{skip: SkipKallsymsNo}
		if t.named {
			res.err = errors.New("kallsyms of an unknown kernel: no build ID")
			res.again = true
		}
		return res
	}
	if !t.class.Packed() { // two holds at a time could wait for one another
		hold, err := w.ix.budget.Acquire(w.ix.ctx, kallsymsCost*size)
		if err != nil {
			return fileResult{err: err, again: true}
		}
		defer w.ix.budget.Release(hold)
	}
	kernel, _, readErr := splitKallsyms(t.path, io.NewSectionReader(data, 0, math.MaxInt64))
	if err := w.reads.Err(); err != nil {
		return fileResult{err: &runError{err}}
	}
	if errors.Is(readErr, symlist.ErrRestricted) {
		return damagedFile(
			fmt.Errorf("%w: it was copied without the right to see addresses", readErr))
	}
	c := &store.Contribution{Manifest: store.Manifest{ID: id, Kind: ingest.Kernel}}
	if err := w.addKernel(c, kernel, t.path); err != nil {
		return damagedFile(cmp.Or(readErr, err))
	}
	if err := w.ix.merge(c, count); err != nil {
		return notMerged(err)
	}
	res := fileResult{id: id, err: readErr}
	if readErr != nil {
		res.skip = SkipDamaged
	}
	if count {
		w.ix.count(func(s *Summary) {
			s.Read++
			s.Raw += uint64(size)
			s.Kernels++
		})
	}
	return res
}

// kallsymsCost is the working memory per byte of kallsyms text.
const kallsymsCost = 4

// kernel makes the table of a kernel image, vmlinux: addresses relative to _text.
func (s *sources) kernel(f *elf.File) {
	refs, err := f.RefSymbols()
	if err != nil {
		s.fail(err)
	}
	base, ok := elf.TextSymbol(refs)
	if !ok {
		s.fail(errNoText)
		return
	}
	if arch := machine.Of(f.Machine); arch != nil && arch.KernelLinked {
		s.c.Manifest.RefSyms = append(s.c.Manifest.RefSyms,
			store.RefSymbol{Name: ingest.LinkedAddresses, Addr: -base})
	}
	for _, r := range refs {
		if slices.Contains(refSymbols, r.Name) && r.Addr >= base {
			ref := store.RefSymbol{Name: r.Name, Addr: r.Addr - base}
			s.c.Manifest.RefSyms = append(s.c.Manifest.RefSyms, ref)
		}
	}
	s.only = s.w.ix.only(&s.c.Manifest)
	s.dwarf(f, base)
	s.add(store.Symtab, func(b *symtab.Builder) error { return f.Symbols(elf.Symtab, symbolAdder(b, base)) })
}

// Rebuild makes the table of a source anew from its captured input, for
// store.RebuildOptions.
func Rebuild(_ *store.Manifest, info store.SourceInfo, raw []byte) (*symtab.Encoded, error) {
	if !info.Kind.List() {
		return nil, fmt.Errorf("no way to make a %s table from a captured input", info.Kind)
	}
	k, _, err := splitKallsyms(info.Path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	b := symtab.NewBuilder(symtab.Options{})
	k.fill(b, rawBase)
	return b.Encode(), nil
}
