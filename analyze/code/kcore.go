package code

import (
	"errors"
	"fmt"
	"os"

	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/input"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/sideband"
	"symbolize/store"
)

// AddKernel adds the copy of the kernel's code that a recording of perf record --kcore has, for the
// one kernel of its profile. The capture may be closed afterwards.
func (c *Finder) AddKernel(capture *input.Capture, p *ingest.Profile) {
	path, list, kernels := capture.Kcore(), capture.Kallsyms(), p.Kernels()
	if path == "" || len(kernels) != 1 {
		return
	}
	if list != "" {
		if l, err := sideband.ReadKernelList(list); err != nil || capture.CheckKallsyms(l, kernels[0]) != nil {
			return
		}
	}
	if key := kernels[0].Key(); c.copies[key].code == "" { // others of the build have the same code
		c.copies[key] = kernelCopy{code: path, symbols: list, capture: capture}
	}
}

// kernelCopy has the paths of a copy of the kernel's code and of its symbols, of the same boot, and
// the capture that it is beside, closed.
type kernelCopy struct {
	code, symbols string
	capture       *input.Capture
}

// kernelCode opens the copy of a kernel's code; nil if none was added, or if it cannot be
// read.
func (c *Finder) kernelCode(o *ingest.Object, m *store.Manifest) (*fileCode, error) {
	k, ok := c.copies[o.ID.Key()]
	if !ok || o.Kind != ingest.Kernel {
		return nil, nil
	}
	return k.open(c.o.View, m)
}

// open opens the copy. It has the addresses of the recorded run.
func (k *kernelCopy) open(view store.View, m *store.Manifest) (*fileCode, error) {
	text, err := k.text()
	if err != nil {
		return nil, err
	}
	f, file, err := k.core()
	if err != nil {
		return nil, err
	}
	return &fileCode{file: f, closer: file, manifest: m, finder: resolve.NewFinder(view, m),
		base: text, ran: true}, nil
}

// core opens the ELF file of the copy. The caller closes file.
func (k *kernelCopy) core() (f *elf.File, file *os.File, err error) {
	if file, err = files.Open(k.code); err != nil {
		return nil, nil, err
	}
	fi, err := file.Stat()
	if err == nil {
		f, err = elf.OpenCore(k.code, file, fi.Size())
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return f, file, nil
}

// text returns the run-time address of _text, from which tables of kernels count.
func (k *kernelCopy) text() (at addr.Addr, err error) {
	if k.symbols == "" {
		return 0, fmt.Errorf("%s: no kallsyms next to it", k.code)
	}
	f, err := files.Open(k.symbols)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	err = symlist.ReadKallsyms(k.symbols, f, func(s symlist.KernelSymbol) bool {
		if s.Module == "" && s.Name == "_text" {
			at = addr.Addr(s.Addr)
		}
		return at == 0
	})
	if at == 0 && err == nil {
		err = fmt.Errorf("%s: no symbol _text", k.symbols)
	}
	if at != 0 {
		err = nil // in lines after it
	}
	return at, err
}
