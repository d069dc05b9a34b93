package sideband

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/ingest/object/symlist"
)

// KernelListError is why a copy of /proc/kallsyms is not of a capture's kernel.
type KernelListError struct{ Path, Reason string }

// Error returns the path and the reason.
func (e *KernelListError) Error() string { return e.Path + ": of another kernel: " + e.Reason }

// KernelList has the addresses of a copy of /proc/kallsyms by which kernels differ; 0 for absent.
type KernelList struct {
	path                      string
	symbols, others           uint64 // of the kernel proper, of modules
	text, stext, etext, edata uint64
	lowest                    uint64
}

// ReadKernelList reads a copy of /proc/kallsyms, plain or packed. Damage is reported when the list is
// indexed; a file without any symbol is an error.
func ReadKernelList(path string) (*KernelList, error) {
	f, err := files.OpenUnpacked(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := &KernelList{path: path}
	err = symlist.ReadKallsyms(path, f, func(s symlist.KernelSymbol) bool { l.add(&s); return true })
	if l.symbols == 0 && l.others == 0 && err != nil {
		return nil, err
	}
	return l, nil
}

// add adds a symbol.
func (l *KernelList) add(s *symlist.KernelSymbol) {
	if s.Module != "" {
		l.others++
		return
	}
	if l.symbols++; s.IsCode() && (l.lowest == 0 || s.Addr < l.lowest) {
		l.lowest = s.Addr
	}
	switch s.Name {
	case "_text":
		l.text = s.Addr
	case "_stext":
		l.stext = s.Addr
	case "_etext":
		l.etext = s.Addr
	case "_edata":
		l.edata = s.Addr
	}
}

// maxKernelText bounds the size of a kernel's code in bytes: a longer mapping has another end.
const maxKernelText = 128 << 20

// CheckKallsyms compares a list with what the capture has of its kernel, and with the kernel's build
// ID: equal ones decide. The list of another kernel is a *KernelListError. Another boot of the kernel
// moves all symbols by the same distance, and is not an error.
func (k *Kernel) CheckKallsyms(l *KernelList, kernel buildid.ID) error {
	refuse := func(format string, args ...any) error {
		return &KernelListError{l.path, fmt.Sprintf(format, args...)}
	}
	id := listID(l.path)
	if !id.IsZero() && !kernel.IsZero() && kernel.Space() == buildid.GNU {
		if id.Matches(kernel) || kernel.Matches(id) {
			return nil
		}
		return refuse("its build ID is %s, the capture's %s", id, kernel)
	}
	its, release := releaseOf(l.path), k.host.Release
	if its != "" && release != "" && its != release {
		return refuse("its name has the release %s, the capture comes from %s", its, release)
	}
	upper := k.host.is64()
	if k.Mapped && k.address != 0 {
		upper = k.address>>63 != 0
	}
	switch known := k.Mapped && k.address != 0; {
	case l.symbols == 0 || !known && !upper:
		return nil
	case upper && l.lowest>>63 == 0:
		return refuse("its addresses have 32 bits")
	case !upper && l.lowest>>63 != 0:
		return refuse("its addresses have 64 bits, the capture's 32")
	case !known:
		return nil
	}
	at := map[string]uint64{"_text": l.text, "_stext": l.stext}[k.symbol]
	if at == 0 {
		return refuse("it has no symbol %s, from which the capture's addresses count", k.symbol)
	}
	size := k.end - k.address // perf ends the mapping at _edata or, without that, at _etext
	if k.end <= k.address || size > maxKernelText || l.etext <= at || size == l.etext-at ||
		l.edata > at && size == l.edata-at || k.changes.beginsAt(k.end) {
		return nil
	}
	return refuse("its _etext is %#x after %s, the capture's %#x", l.etext-at, k.symbol, size)
}

// listID returns the build ID of the kernel of a kallsyms text: the directory's name, as in perf's
// cache, or from the notes next to it.
func listID(path string) buildid.ID {
	if id := buildid.OfDir(path); !id.IsZero() {
		return id
	}
	return kernelIDBeside(path)
}

// listName is the name of a list of symbols with the release of its kernel.
var listName = regexp.MustCompile(`^(?:kallsyms|System\.map)[-._]([1-9]\d?\.\d+(?:[.-]\S*)?)$`)

// releaseOf returns the release of the kernel in the name of a list of symbols; "" for none.
func releaseOf(path string) string {
	name := filepath.Base(path)
	for _, packed := range []string{".xz", ".gz", ".zst", ".bz2", ".txt"} {
		name = strings.TrimSuffix(name, packed)
	}
	m := listName.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	return m[1]
}
