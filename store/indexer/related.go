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
	reads   *files.Reads // of all files
	path    string       // of the file with the debug information
	runtime string       // of the one that it was found as the debug file of, or ""

	mu      sync.Mutex // dwo is called by several goroutines
	run     *runError  // why one could not be opened that may be there
	missing losses     // files
	looked  []string   // places, as path rows have them

	alt   *altFile // nil if there is none
	files []*os.File
	dwps  []string // places where a .dwp was looked for
}

func (t *relatedFiles) close() {
	if t.alt != nil {
		t.ix.alts.release(t.alt)
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
	t.missing.add(err)
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

// places returns the places where files were not found, in an order that does not depend on the
// order of the searches.
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
		if st.kind != kindFile { // a pipe would block
			continue
		}
		f, err := files.Open(p)
		t.fail(ofRun(err))
		if err != nil {
			looked = append(looked, p)
			continue
		}
		ef, err := elf.Open(p, t.reads.Of(f), int64(st.size))
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
		Split: split, Workers: workers, Variables: split,
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
		t.miss(fmt.Errorf("%s%s with build ID %s was not found", dwzFile, name, id), looked)
		return
	}
	st, err := statFile(ef.Name)
	if err != nil { // deleted meanwhile: no other task will find it there
		st = fileStat{}
	}
	t.alt = t.ix.alts.acquire(file, ef, st, t.ix.opts.Workers)
}

// dwzFile begins the text of a supplementary file that was not found. Path rows keep texts only.
const dwzFile = "dwz file "

// debugSup reads .debug_sup, the form of the link in DWARF 5 (7.3.6): the file's
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

// altPlaces lists where a supplementary file may be: see buildid.AltPaths. The indexed directories
// are searched like debug roots and like roots of file systems; and files among the indexed ones are
// tried by name.
func (t *relatedFiles) altPlaces(name string, id buildid.ID) []string {
	roots := slices.Clip(t.ix.opts.DebugRoots)
	for _, tree := range t.ix.trees {
		roots = append(roots, filepath.Join(tree, "usr/lib/debug"), tree)
	}
	places := buildid.AltPaths(t.path, name, id, roots)
	if filepath.IsAbs(name) {
		for _, tree := range t.ix.trees {
			places = append(places, filepath.Join(tree, name))
		}
	}
	for _, file := range t.ix.named {
		if filepath.Base(file) == filepath.Base(name) {
			places = append(places, file)
		}
	}
	var once []string
	for _, p := range places {
		if !slices.Contains(once, p) {
			once = append(once, p)
		}
	}
	return once
}

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
	return LoadDWARF(t.reads.Of(file), ef, true, t.ix.opts.Workers)
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
	l := LoadDWARF(t.reads.Of(file), ef, true, 1)
	t.fail(failed(l))
	return dwarf.NewSplit(l.Sections, dwarf.Options{Name: ef.Name, Close: func() error {
		return errors.Join(l.Close(), file.Close())
	}}), nil
}

// maxIdleAlts is how many supplementary files stay open that no file in work refers to.
// A package's debug files, often hundreds, share one, and come one after another.
const maxIdleAlts = 2

// altFile is a supplementary file that dwz made, open for all that refer to it.
type altFile struct {
	key  altKey
	file *os.File
	once sync.Once
	load *dwarf.Loaded
	data *dwarf.Data

	users int // of altFiles
}

// altKey identifies supplementary files. Their build IDs do not: a file is used only
// where the link of the debug file leads to it, independent of earlier reads.
type altKey struct {
	path string
	st   fileStat
}

// altFiles keeps supplementary files open: inflating one costs more than reading most of
// the files that refer to it.
type altFiles struct {
	mu   sync.Mutex
	open map[altKey]*altFile
	idle []*altFile // without users, the longest idle first
}

// acquire returns the sections of a file, which the first caller reads. file belongs to the
// result, which has to be released.
func (a *altFiles) acquire(file *os.File, ef *elf.File, st fileStat, workers int) *altFile {
	key := altKey{ef.Name, st}
	a.mu.Lock()
	f := a.open[key]
	if f == nil {
		f = &altFile{key: key, file: file}
		if a.open == nil {
			a.open = make(map[altKey]*altFile)
		}
		a.open[key] = f
	}
	if f.users == 0 {
		a.idle = slices.DeleteFunc(a.idle, func(i *altFile) bool { return i == f })
	}
	f.users++
	a.mu.Unlock()
	if f.file != file {
		file.Close()
	}
	f.once.Do(func() {
		f.load = LoadDWARF(f.file, ef, false, workers)
		f.data = dwarf.New(f.load.Sections, dwarf.Options{Name: ef.Name})
	})
	return f
}

// release gives up one use of f.
func (a *altFiles) release(f *altFile) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.users--; f.users > 0 {
		return
	}
	if a.idle = append(a.idle, f); len(a.idle) > maxIdleAlts {
		a.shut(a.idle[0])
		a.idle = slices.Delete(a.idle, 0, 1)
	}
}

func (a *altFiles) shut(f *altFile) {
	f.load.Close() // nothing was written
	f.file.Close()
	delete(a.open, f.key)
}

// close closes all files, which must have no users.
func (a *altFiles) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.idle {
		a.shut(f)
	}
	a.idle = nil
}
