package code

import (
	"errors"
	"fmt"

	"symbolize/analyze/annotate"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/texts"
)

// maxImage is the size of the page that the kernel reports for a trampoline or dispatcher, which may
// be shared with others and with programs.
const maxImage = 4096

// errImage is the reason why the code of a trampoline or dispatcher of BPF is not known: no system
// call gives it, and the kernel reports its changes to nobody.
var errImage = texts.WithHint(errors.New("no image: the kernel wrote this code for itself, and only "+
	"/proc/kcore shows it"), "`perf record --kcore` copies it with the kernel's code")

// isImage reports whether an object is a trampoline or dispatcher of BPF, or other code that the
// kernel wrote for itself.
func isImage(o *ingest.Object) bool { return o.Symbol != "" && !bpf.IsSymbol([]byte(o.Symbol)) }

// image returns the code of such an object: from the copy of the kernel's code of the one recording
// that has one.
func (c *Finder) image(o *ingest.Object) (*annotate.Code, error) {
	if len(c.copies) != 1 {
		return nil, errImage
	}
	for _, k := range c.copies {
		start, size, err := k.find(o.Symbol)
		if err != nil {
			return nil, err
		}
		b, err := k.read(start, size)
		if err != nil {
			return nil, err
		}
		if len(b) == 0 {
			return nil, errImage
		}
		code := &annotate.Code{Machine: c.Machine, PC: addr.PC(start), Bytes: b, Origin: k.code}
		kernel, err := k.capture.KernelMap(c.ctx, &bpf.Program{})
		if err != nil {
			return nil, err
		}
		code.Symbols = func(pcs []addr.PC) []annotate.CodeSymbol {
			names := make([]annotate.CodeSymbol, len(pcs))
			for i, pc := range pcs {
				names[i] = c.bpfSymbol(&bpf.Program{}, kernel, pc)
			}
			return names
		}
		return code, nil
	}
	return nil, errImage
}

// find returns where the only BPF code of a name begins, and its bytes up to the next symbol; size is
// 0 if there is none.
func (k *kernelCopy) find(name string) (start, size uint64, err error) {
	f, err := files.Open(k.symbols)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	var starts []uint64 // of all BPF code
	found := 0
	_, err = symlist.ScanKallsyms(k.symbols, f, true, func(s symlist.KernelSymbol) bool {
		if s.Module != "bpf" {
			return true
		}
		starts = append(starts, s.Addr)
		if s.Name == name {
			start, found = s.Addr, found+1
		}
		return true
	})
	if err != nil || found != 1 {
		return 0, 0, err
	}
	size = maxImage
	for _, at := range starts {
		if at > start {
			size = min(size, at-start)
		}
	}
	return start, size, nil
}

// read returns the bytes at an address, without the breakpoints with which the kernel fills the rest;
// none if the copy does not have them.
func (k *kernelCopy) read(start, size uint64) ([]byte, error) {
	f, file, err := k.core()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	off, n, ok := f.Mapped(addr.Addr(start))
	if !ok || size == 0 {
		return nil, nil
	}
	b := make([]byte, min(n, size))
	if err := f.ReadBytes(off, b); err != nil {
		return nil, fmt.Errorf("%s: %w", k.code, err)
	}
	const breakpoint = 0xcc // of x86
	for len(b) > 0 && b[len(b)-1] == breakpoint {
		b = b[:len(b)-1]
	}
	return b, nil
}
