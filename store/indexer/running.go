package indexer

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/sideband"
	"symbolize/store"
)

// Running identifies the kernel that this machine runs, its modules and its vdso, as Options.Kernel
// adds them.
type Running struct {
	sys  sysRoot
	id   buildid.ID // zero if the kernel does not show it
	vdso buildid.ID // of the image mapped into this process, zero if there is none
}

// OpenRunning reads the build IDs of the running kernel and of its vdso.
func OpenRunning() *Running { return openRunning("") }

func openRunning(sys sysRoot) *Running {
	r := &Running{sys: sys}
	r.id, _ = notesID(sys.path("/sys/kernel/notes")) // without an ID it is no capture's kernel
	image, err := sys.ownVDSO()
	if err != nil || image == nil {
		return r
	}
	if f, err := elf.Open("[vdso]", bytes.NewReader(image), int64(len(image))); err == nil {
		r.vdso = f.ID
	}
	return r
}

// Kernel reports whether the running kernel has this build ID.
func (r *Running) Kernel(id buildid.ID) bool { return r.id.Matches(id) }

// Has reports whether an object is the running kernel, a module that is loaded, or the vdso.
func (r *Running) Has(o *ingest.Object) bool {
	switch o.Kind {
	case ingest.Kernel:
		return r.id.Matches(o.ID)
	case ingest.VDSO:
		return r.vdso.Matches(o.ID)
	case ingest.Module:
		name := filepath.Base(ingest.ShortName(o))
		id, err := notesID(r.sys.path("/sys/module/" + name + "/notes/.note.gnu.build-id"))
		return err == nil && id.Matches(o.ID)
	}
	return false
}

// NamesErr returns why /proc/kallsyms names nothing: symlist.ErrRestricted where the kernel
// hides addresses from this user. It reads the list's beginning.
func (r *Running) NamesErr() error {
	head, err := files.ReadHead(r.sys.path("/proc/kallsyms"), kallsymsHead)
	if err != nil {
		return pathReason(err)
	}
	for line := range bytes.Lines(head) {
		if word, _, _ := bytes.Cut(line, []byte{' '}); len(bytes.Trim(word, "0")) > 0 {
			return nil
		}
	}
	return symlist.ErrRestricted
}

// kallsymsHead is how much of /proc/kallsyms shows whether addresses are hidden, in bytes: on
// x86-64 the first 7 KB are per-CPU symbols, some at address 0.
const kallsymsHead = 64 << 10

// SameBoot reports whether a recording of this host can be of the current boot: neither the release
// and build ID of its kernel nor the address of its reference symbol differ. What one of the two
// hid is not compared.
func (r *Running) SameBoot(k sideband.RecordedKernel) bool {
	if !k.ID.IsZero() && !r.id.IsZero() && !r.id.Matches(k.ID) {
		return false
	}
	if release, err := r.release(); err == nil && k.Release != "" && release != k.Release {
		return false
	}
	if k.Address == 0 || r.NamesErr() != nil {
		return true
	}
	now := r.symbol(k.Symbol)
	return now == 0 || now == k.Address
}

// Recorded is the description of the kernel in a capture without its build ID.
type Recorded struct {
	Release string // as of uname -r
	Symbol  string // the reference symbol
	Address uint64 // where it was; 0 if it was hidden
	End     int64  // when the recording ended, ns since 1970
}

// Proves returns the running kernel's build ID if a recording of this host is of it: the release
// is the same, the recording ended after this kernel was booted, and the reference symbol is where
// it was then. Else it returns the zero ID.
func (r *Running) Proves(rec Recorded) buildid.ID {
	release, err := r.release()
	if err != nil || rec.Address == 0 || release != rec.Release || rec.End <= r.booted() || r.symbol(rec.Symbol) != rec.Address {
		return buildid.ID{}
	}
	return r.id
}

// OfRelease returns the running kernel's build ID if a release, as uname -r prints it, is its own;
// otherwise the zero ID. Another build of the kernel may have the same release.
func (r *Running) OfRelease(release string) buildid.ID {
	if own, err := r.release(); err != nil || own != release {
		return buildid.ID{}
	}
	return r.id
}

func (r *Running) release() (string, error) {
	release, err := os.ReadFile(r.sys.path("/proc/sys/kernel/osrelease"))
	return strings.TrimSpace(string(release)), err
}

// booted returns when this kernel was booted, ns since 1970, to the next full second; the greatest
// time if that is not known.
func (r *Running) booted() int64 {
	text, err := os.ReadFile(r.sys.path("/proc/stat"))
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "btime "); ok {
				if sec, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 33); err == nil {
					return (sec + 1) * int64(time.Second)
				}
			}
		}
	}
	return math.MaxInt64
}

// symbol returns the address of a symbol of the kernel itself, 0 if it is hidden or not there.
func (r *Running) symbol(name string) (address uint64) {
	f, err := os.Open(r.sys.path("/proc/kallsyms"))
	if err != nil {
		return 0
	}
	defer f.Close()
	err = symlist.ReadKallsyms("/proc/kallsyms", f, func(s symlist.KernelSymbol) bool {
		if s.Module == "" && s.Name == name {
			address = s.Addr
		}
		return address == 0
	})
	if err != nil {
		return 0
	}
	return address
}

// liveVDSO merges the running kernel's vdso, and which kernel it is of.
func (w *fileReader) liveVDSO() {
	id, err := notesID(w.ix.opts.sys.path("/sys/kernel/notes"))
	if err != nil {
		w.ix.problem(Problem{Path: "/sys/kernel/notes", Err: pathReason(err)})
		return
	}
	c := &store.Contribution{Manifest: store.Manifest{ID: id, Kind: ingest.Kernel}}
	if c.Manifest.VDSO = w.vdsos(); len(c.Manifest.VDSO) > 0 {
		w.mergeLive(c)
	}
}
