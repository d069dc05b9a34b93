package indexer

import (
	stdelf "debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"symbolize/buildid"
	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/elf"
)

// relatedFiles finds the files that one file's debug information refers to: the supplementary file
// that dwz makes, .dwo files and their package. Where one is missing it remembers where it was
// looked for.
type relatedFiles struct {
	ix      *index
	path    string // of the file with the debug information
	runtime string // of the one that it was found as the debug file of, or ""

	mu      sync.Mutex // dwo is called by several goroutines
	run     *runError  // why one could not be opened that may be there
	missing int        // files
	first   error      // of them
	looked  []string   // places, as path rows have them

	alt   *altFile // nil if there is none
	files []*os.File
	dwps  []string // places where a .dwp was looked for
}

func newRelated(ix *index, path, runtime string) *relatedFiles {
	return &relatedFiles{ix: ix, path: path, runtime: runtime}
}

func (t *relatedFiles) close() {
	if t.alt != nil {
		t.ix.alts.give(t.alt)
	}
	for _, f := range t.files {
		f.Close()
	}
}

// maxPlaces limits the places kept of one file's missing parts; a row can hold fewer.
const maxPlaces = 1 << 10

// miss notes a file that was in no place.
func (t *relatedFiles) miss(err error, looked []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.missing++; t.first == nil {
		t.first = err
	}
	if len(t.looked) < maxPlaces {
		t.looked = append(t.looked, looked...)
	}
}

// fail notes that the run lacked something, unless err is nil.
func (t *relatedFiles) fail(err *runError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run == nil {
		t.run = err
	}
}

// places returns the places where files were not found, in an order that does not depend on who
// looked first.
func (t *relatedFiles) places() []string {
	if len(t.looked) == 0 {
		return nil
	}
	slices.Sort(t.looked)
	return slices.Compact(append(slices.Clip(t.dwps), t.looked...))
}

// openFile opens an ELF file at one of the places, the first that holds the right one.
func (t *relatedFiles) openFile(places []string, right func(*elf.File) bool) (
	*os.File, *elf.File, []string) {
	var looked []string
	for _, p := range places {
		st, err := t.ix.absent.stat(p)
		if err != nil {
			looked = append(looked, p)
			continue
		}
		if st.kind != kindFile { // a pipe would hold us up
			continue
		}
		f, err := files.Open(p)
		t.fail(ofRun(err))
		if err != nil {
			looked = append(looked, p)
			continue
		}
		ef, err := elf.Open(p, f, int64(st.size))
		if err == nil && right(ef) {
			return f, ef, nil
		}
		f.Close()
		looked = append(looked, refused(p, st))
	}
	return nil, nil, looked
}

// LoadDWARF loads the DWARF sections of a file, which r reads; with split the sections of a .dwo or
// .dwp file. Sections of relocatable files are not relocated. The caller closes the result.
func LoadDWARF(r io.ReaderAt, f *elf.File, split bool, workers int) *dwarf.Loaded {
	return dwarf.Load(r, rawSections(f), dwarf.LoadOptions{
		Name: f.Name, Class64: f.Class == stdelf.ELFCLASS64, BigEndian: f.BigEndian,
		Split: split, Workers: workers,
	})
}

// openAlt opens the supplementary file of f, if it needs one and there is one.
func (t *relatedFiles) openAlt(f *elf.File) {
	name, id, ok := f.AltLink()
	if !ok {
		if name, id, ok = debugSup(f); !ok || name == "" {
			return
		}
	}
	file, ef, looked := t.openFile(t.altPlaces(name, id), func(ef *elf.File) bool {
		own := ef.ID
		if _, sum, ok := debugSup(ef); ok {
			own = sum
		}
		return own.Matches(id) && ef.BigEndian == f.BigEndian
	})
	if file == nil {
		t.miss(fmt.Errorf("dwz file %s with build ID %s was not found", name, id), looked)
		return
	}
	st, err := statFile(ef.Name)
	if err != nil { // gone already: nobody else will find it there
		st = fileStat{}
	}
	t.alt = t.ix.alts.take(file, ef, st, t.ix.opts.Workers)
}

// debugSup reads .debug_sup, the form that DWARF 5 (7.3.6) gives the link: the file's
// name and its checksum, which dwz makes as it makes build IDs. The supplementary file
// has one without a name.
func debugSup(f *elf.File) (name string, sum buildid.ID, ok bool) {
	s := f.Section(".debug_sup")
	if s == nil || s.Type == stdelf.SHT_NOBITS {
		return "", sum, false
	}
	b, err := f.Data(s, maxDebugSup)
	if err != nil {
		return "", sum, false
	}
	r := decode.New(f.Name, b, int64(s.Offset), f.BigEndian)
	version := r.U16()
	r.U8() // is_supplementary
	name = r.CString()
	sum = buildid.New(r.Bytes(r.Uvarint()))
	return name, sum, r.Err() == nil && version == 5 && !sum.IsZero()
}

// maxDebugSup bounds .debug_sup, in bytes: a path and a checksum.
const maxDebugSup = 64 << 10

// altPlaces lists where a supplementary file may be: at the link's path, under the debug roots by
// its build ID, and in their .dwz directories if the file was moved (an unpacked package, a
// chroot).
func (t *relatedFiles) altPlaces(name string, id buildid.ID) []string {
	at := name
	if !filepath.IsAbs(name) {
		at = filepath.Join(filepath.Dir(t.path), name)
	}
	places := append([]string{at}, buildid.DebugPaths(id, t.ix.opts.DebugRoots)...)
	if i := strings.Index(name, dwzDir); i >= 0 {
		for _, r := range t.ix.opts.DebugRoots {
			places = append(places, filepath.Join(r, name[i:]))
		}
	}
	return places
}

// dwzDir is where distributions put the files that dwz makes, under /usr/lib/debug.
const dwzDir = "/.dwz/"

// packageOf returns the path of a runtime file's .dwp file.
func packageOf(runtime string) string { return runtime + ".dwp" }

// openDWP loads the .dwp file beside the file or the runtime file, since tools name it after
// either; nil if there is none.
func (t *relatedFiles) openDWP() *dwarf.Loaded {
	places := []string{t.path + ".dwp"}
	if base, ok := strings.CutSuffix(t.path, ".debug"); ok {
		places = append(places, base+".dwp")
	}
	if t.runtime != "" {
		places = append(places, packageOf(t.runtime))
	}
	file, ef, looked := t.openFile(places, func(ef *elf.File) bool {
		return ef.Section(".debug_cu_index") != nil
	})
	if file == nil {
		t.dwps = looked // it is missing only if a unit is
		return nil
	}
	t.files = append(t.files, file)
	return LoadDWARF(file, ef, true, t.ix.opts.Workers)
}

// dwo opens the .dwo file of a unit: where the compiler put it, or beside the file. It serves
// dwarf.Options.
func (t *relatedFiles) dwo(name, compDir string, _ uint64) (*dwarf.Data, error) {
	if name == "" {
		return nil, errors.New("no name")
	}
	dir := filepath.Dir(t.path)
	var places []string
	if filepath.IsAbs(name) {
		places = append(places, filepath.Clean(name))
	} else {
		if filepath.IsAbs(compDir) {
			places = append(places, filepath.Join(compDir, name))
		}
		places = append(places, filepath.Join(dir, name))
	}
	if beside := filepath.Join(dir, filepath.Base(name)); !slices.Contains(places, beside) {
		places = append(places, beside)
	}
	file, ef, looked := t.openFile(places, func(ef *elf.File) bool {
		return ef.Section(".debug_info.dwo") != nil || ef.Section(".zdebug_info.dwo") != nil
	})
	if file == nil {
		t.miss(fmt.Errorf("split unit %s was not found", places[0]), looked)
		return nil, os.ErrNotExist
	}
	l := LoadDWARF(file, ef, true, 1)
	t.fail(failed(l))
	return dwarf.NewSplit(l.Sections, dwarf.Options{Name: ef.Name, Close: func() error {
		return errors.Join(l.Close(), file.Close())
	}}), nil
}
