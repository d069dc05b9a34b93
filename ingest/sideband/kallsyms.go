package sideband

import (
	"cmp"
	"crypto/sha1"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/object/kallsyms"
	"symbolize/ingest/regular"
)

// kallsymsFunctions are functions of modules and BPF programs that only a kallsyms text has.
type kallsymsFunctions struct {
	symbols []kallsyms.Symbol // sorted by address
	numbers []uint32          // raw object + 1
}

// bpfModule is the module of BPF programs in a list.
const bpfModule = "bpf"

// maxListed is the largest size of a function in bytes, as a list has no ends of functions.
const maxListed = 64 << 10

// maxNotes bounds the notes beside a kallsyms text, in bytes.
const maxNotes = 64 << 10

// AddKallsyms enters the kernel's address space of a kallsyms text: the kernel by the address
// of _text, and modules and BPF programs function by function.
func (sb *State) AddKallsyms(path string) error {
	f, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha1.New()
	var text, stext, end uint64
	_, err = kallsyms.ScanAll(path, io.TeeReader(f, sum), func(s kallsyms.Symbol) bool {
		switch {
		case s.Module != "":
			if s.IsCode() {
				sb.Kernel.functions.symbols = append(sb.Kernel.functions.symbols, s)
			}
		case s.Name == "_text":
			text = s.Addr
		case s.Name == "_stext":
			stext = s.Addr
		case s.Name == "_end":
			end = s.Addr
		}
		return true
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(sb.Kernel.functions.symbols, func(a, b kallsyms.Symbol) int {
		return cmp.Compare(a.Addr, b.Addr)
	})
	sb.Kernel.functions.numbers = make([]uint32, len(sb.Kernel.functions.symbols))
	id := kernelIDBeside(path)
	if id.IsZero() {
		id = buildid.Make(buildid.Content, sum.Sum(nil))
	}
	ref, at := "_text", text
	if text == 0 {
		ref, at = "_stext", stext
	}
	if at == 0 {
		return fmt.Errorf("%s: neither _text nor _stext is in it", path)
	}
	sb.Kernel.Mapped, sb.Kernel.symbol, sb.Kernel.address = true, ref, at
	sb.insert(0, change{kind: changeKernelMapping, layer: addrspace.Around, a: at,
		b: max(end, kernelReach(sb.Host.Arch, at)), ref: sb.Objects.kernel(ref, id)})
	return nil
}

// kernelIDBeside returns the build ID of the kernel of a list: by a copy of /sys/kernel/notes
// in the same directory, for /proc/kallsyms by the running kernel's notes.
func kernelIDBeside(path string) buildid.ID {
	notes := filepath.Join(filepath.Dir(path), "notes")
	if path == "/proc/kallsyms" {
		notes = "/sys/kernel/notes"
	}
	f, err := regular.Open(notes)
	if err != nil {
		return buildid.ID{}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxNotes))
	if err != nil {
		return buildid.ID{}
	}
	id, _ := buildid.KernelNotes(b)
	return id
}

// InKallsyms finds the function of a module or BPF program that an address is in, and its
// distance from the start. The rule of KernelCode for return addresses (ret) that no call can
// precede applies here too: none precedes the first instruction of a program, of a module, or
// of a function with padding before it.
func (sb *State) InKallsyms(pc uint64, ret bool) (object uint32, offset uint64, ok bool) {
	c, at := &sb.Kernel.functions, addr.Site(pc, ret)
	if i, found := c.find(pc); found &&
		(i == 0 || c.symbols[i].Module == bpfModule ||
			c.symbols[i-1].Module != c.symbols[i].Module ||
			strings.HasPrefix(c.symbols[i-1].Name, kallsyms.Padding)) {
		at = pc
	}
	i, found := c.find(at)
	if !found {
		i--
	}
	if i < 0 || at-c.symbols[i].Addr >= maxListed {
		return 0, 0, false
	}
	s := &c.symbols[i]
	if c.numbers[i] == 0 {
		c.numbers[i] = 1 + sb.Objects.listedCode(s)
	}
	return c.numbers[i] - 1, at - s.Addr, true
}

// find returns the index of the function that begins at an address, or its insertion point.
func (c *kallsymsFunctions) find(at uint64) (i int, found bool) {
	return slices.BinarySearchFunc(c.symbols, at, func(s kallsyms.Symbol, at uint64) int {
		return cmp.Compare(s.Addr, at)
	})
}

// listedCode returns the object of a function in a list.
func (r *Objects) listedCode(s *kallsyms.Symbol) uint32 {
	if s.Module == bpfModule {
		key := ObjectKey{Kind: ingest.JIT, Path: r.Path([]byte(s.Name))}
		return r.Add(key, func() ingest.Object {
			return ingest.Object{File: ingest.FileRef{Path: s.Name}, Symbol: s.Name, NoImage: true}
		})
	}
	key := ObjectKey{Kind: ingest.Module, Path: r.Path([]byte(s.Module + "\x00" + s.Name))}
	return r.Add(key, func() ingest.Object {
		return ingest.Object{File: ingest.FileRef{Path: "[" + s.Module + "]"}, Symbol: s.Name}
	})
}
