package indexer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/procmaps"
	"symbolize/store"
)

// sysRoot is where the running system's /proc, /sys and /lib/modules are.
type sysRoot string

func (r sysRoot) path(p string) string { return string(r) + p }

// maxNotes bounds a file of notes under /sys, in bytes; maxVDSO a vdso image.
const (
	maxNotes = 64 << 10
	maxVDSO  = 1 << 20
)

// notesID reads the build ID of a file of notes.
func notesID(path string) (buildid.ID, error) {
	b, err := files.ReadHead(path, maxNotes)
	if err != nil {
		return buildid.ID{}, err
	}
	id, ok := buildid.KernelNotes(b)
	if !ok {
		return buildid.ID{}, errNoID
	}
	return id, nil
}

var errNoID = errors.New("no build ID among the notes")

// modules reads /proc/modules, except modules with a hidden address.
func (r sysRoot) modules() (map[string]procmaps.Module, error) {
	f, err := os.Open(r.path("/proc/modules"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := make(map[string]procmaps.Module)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if m, ok := procmaps.ParseModule(lines.Text()); ok && m.Addr != 0 {
			out[m.Name] = m
		}
	}
	return out, lines.Err()
}

// liveKernel indexes the running kernel: names from /proc/kallsyms, with its modules and its vdso.
func (w *fileReader) liveKernel() {
	sys := w.ix.opts.sys
	id, err := notesID(sys.path("/sys/kernel/notes"))
	if err != nil {
		w.ix.problem(Problem{Path: "/sys/kernel/notes", Err: pathReason(err), Named: true})
		return
	}
	c := &store.Contribution{Manifest: store.Manifest{ID: id, Kind: ingest.Kernel}}
	kernel, modules, err := w.liveSymbols()
	if err == nil {
		err = w.addKernel(c, kernel, "/proc/kallsyms")
	}
	if err != nil {
		p := Problem{Path: "/proc/kallsyms", Err: pathReason(err), Named: true}
		if errors.Is(err, symlist.ErrRestricted) {
			p.Hint = "run it as root, or allow it with: sysctl kernel.kptr_restrict=0"
		}
		w.ix.problem(p)
	}
	c.Manifest.VDSO = w.vdsos()
	if len(c.Sources) > 0 || len(c.Manifest.VDSO) > 0 {
		w.mergeLive(c)
	}
	w.liveModules(modules)
}

// liveSymbols reads /proc/kallsyms.
func (w *fileReader) liveSymbols() (kernelSyms, map[string]kernelSyms, error) {
	f, err := os.Open(w.ix.opts.sys.path("/proc/kallsyms"))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return splitKallsyms("/proc/kallsyms", f)
}

// liveModules merges the symbols of the loaded modules, each under its own build ID, relative to
// where it was loaded.
func (w *fileReader) liveModules(modules map[string]kernelSyms) {
	sys := w.ix.opts.sys
	loaded, err := sys.modules()
	if err != nil && len(modules) > 0 {
		w.ix.problem(Problem{Path: "/proc/modules", Err: pathReason(err), Named: true})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m, ok := loaded[name]
		if !ok {
			continue // __builtin__kprobes and the like: no module
		}
		notes := "/sys/module/" + name + "/notes/.note.gnu.build-id"
		id, err := notesID(sys.path(notes))
		if err != nil {
			if w.ix.opts.Only == nil { // otherwise no task needs it
				w.ix.problem(Problem{Path: notes, Err: pathReason(err)})
			}
			continue
		}
		w.mergeModule(HostModule{Name: name, ID: id, Base: uint64(m.Addr), Size: m.Size}, modules[name],
			"/proc/kallsyms")
	}
}

// mergeLive merges the data on the running system, unless the store knows it all: it has no path
// rows to compare.
func (w *fileReader) mergeLive(c *store.Contribution) {
	known := w.ix.known(c)
	if !known {
		if err := w.ix.merge(c, true); err != nil {
			if errors.Is(err, store.ErrTooLarge) {
				w.ix.problem(Problem{Path: c.Manifest.ID.String(), Err: err})
			}
			return
		}
	}
	path := "" // where it came from
	if len(c.Sources) > 0 {
		path = c.Sources[0].Info.Path
	}
	w.ix.count(func(s *Summary) {
		w.ix.seen(c.Manifest.ID, path)
		if known {
			s.Unchanged++
		} else {
			s.Read++
			s.countKind(c.Manifest.Kind)
		}
	})
}

// known reports whether a contribution would change nothing.
func (ix *index) known(c *store.Contribution) bool {
	found, err := ix.view.Find(c.Manifest.ID)
	if err != nil || len(found) != 1 || found[0].ID != c.Manifest.ID {
		return false
	}
	m := found[0]
	for i := range c.Sources {
		s := &c.Sources[i]
		if !slices.ContainsFunc(m.Sources, func(o store.SourceInfo) bool {
			return o.Kind == s.Info.Kind && o.Digest == s.Table.Digest &&
				o.Producer >= s.Info.Producer
		}) {
			return false
		}
	}
	return m.Kind == c.Manifest.Kind && containsAll(m.VDSO, c.Manifest.VDSO) &&
		containsAll(m.RefSyms, c.Manifest.RefSyms) &&
		(len(c.Manifest.Layout) == 0 || slices.Equal(m.Layout, c.Manifest.Layout))
}

func containsAll[T comparable](all, some []T) bool {
	for _, v := range some {
		if !slices.Contains(all, v) {
			return false
		}
	}
	return true
}

// vdsos merges the vdso images of the running kernel: the image of this process, and the images
// that the distribution ships beside the modules. It returns their build IDs.
func (w *fileReader) vdsos() []buildid.ID {
	sys := w.ix.opts.sys
	var ids []buildid.ID
	add := func(path string, image []byte) {
		id, err := w.vdso(path, image)
		if err != nil {
			w.ix.problem(Problem{Path: path, Err: err})
			return
		}
		ids = append(ids, id)
	}
	if image, err := sys.ownVDSO(); err != nil {
		w.ix.problem(Problem{Path: "[vdso]", Err: err})
	} else if image != nil {
		add("[vdso]", image)
	}
	release, _ := os.ReadFile(sys.path("/proc/sys/kernel/osrelease"))
	modules := sys.path("/lib/modules/" + strings.TrimSpace(string(release)))
	shipped, _ := filepath.Glob(modules + "/vdso/*.so")
	for _, path := range shipped {
		image, err := files.ReadHead(path, maxVDSO)
		if err != nil {
			w.ix.problem(Problem{Path: path, Err: pathReason(err)})
			continue
		}
		add(path, image)
	}
	slices.SortFunc(ids, buildid.ID.Compare)
	return slices.Compact(ids)
}

// vdso merges one vdso image.
func (w *fileReader) vdso(path string, image []byte) (buildid.ID, error) {
	data := bytes.NewReader(image)
	f, err := elf.Open(path, data, int64(len(image)))
	if err != nil {
		return buildid.ID{}, err
	}
	if f.ID.IsZero() {
		return buildid.ID{}, errors.New("vdso without build ID")
	}
	c, _, err := w.contribution(path, "", data, f, f.ID)
	if err != nil {
		return buildid.ID{}, err
	}
	c.Manifest.Kind = ingest.VDSO
	w.mergeLive(c)
	return f.ID, nil
}

// ownVDSO reads the vdso that the kernel mapped into this process; nil if there is
// none.
func (r sysRoot) ownVDSO() ([]byte, error) {
	maps, err := os.ReadFile(r.path("/proc/self/maps"))
	if err != nil {
		return nil, nil // no /proc: nothing to be had
	}
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[5] != "[vdso]" {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 63)
		end, err2 := strconv.ParseUint(to, 16, 63)
		if err := cmp.Or(err1, err2); err != nil {
			return nil, err
		}
		if end <= start || end-start > maxVDSO {
			return nil, fmt.Errorf("mapped over %#x-%#x", start, end)
		}
		mem, err := os.Open(r.path("/proc/self/mem"))
		if err != nil {
			return nil, pathReason(err)
		}
		defer mem.Close()
		image := make([]byte, end-start)
		_, err = mem.ReadAt(image, int64(start))
		return image, err
	}
	return nil, nil
}
