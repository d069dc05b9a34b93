package indexer

import (
	"os"
	"slices"
	"sync"

	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/elf"
)

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

// take returns the sections of a file, which the first caller reads. It takes over file. The result
// has to be given back.
func (a *altFiles) take(file *os.File, ef *elf.File, st fileStat, workers int) *altFile {
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

// give releases one use of f.
func (a *altFiles) give(f *altFile) {
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
