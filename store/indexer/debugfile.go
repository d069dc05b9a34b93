package indexer

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/ingest/input/container"
	"symbolize/ingest/object/elf"
)

// debugFiles looks for the separate debug file of a runtime file, in gdb's order, which becomes
// w.debug. It returns the places that had none: a file that comes there later makes t's row stale.
func (w *fileReader) debugFiles(t *fileTask, f *elf.File, id buildid.ID) (looked []string) {
	for _, place := range w.debugPlaces(t.path, f, id) {
		d, refusal := w.debugTask(t, place, id)
		if d != nil {
			w.debug = d
			return nil
		}
		if refusal != "" {
			looked = append(looked, refusal)
		}
	}
	return looked
}

// debugPlace is a place where a debug file may be.
type debugPlace struct {
	path   string
	linked bool // by .gnu_debuglink, which has a CRC
	crc    uint32
}

// debugPlaces lists the places of one runtime file, the best first.
func (w *fileReader) debugPlaces(path string, f *elf.File, id buildid.ID) []debugPlace {
	var places []debugPlace
	roots := w.ix.opts.DebugRoots
	if id.Space() == buildid.GNU {
		for _, p := range buildid.DebugPaths(id, roots) {
			places = append(places, debugPlace{path: p})
		}
	}
	name, crc, ok := f.DebugLink()
	if !ok || name == "" || name != filepath.Base(name) {
		return places
	}
	dir := filepath.Dir(path)
	dirs := []string{dir, filepath.Join(dir, ".debug")}
	for _, r := range roots {
		dirs = append(dirs, filepath.Join(r, dir))
	}
	for _, d := range dirs {
		places = append(places, debugPlace{filepath.Join(d, name), true, crc})
	}
	return places
}

// debugTask checks one place. It returns a task that reads the debug file there, otherwise t's
// row entry for the place, "" for none.
func (w *fileReader) debugTask(t *fileTask, place debugPlace, id buildid.ID) (*fileTask, string) {
	st, err := w.ix.absent.stat(place.path)
	if err != nil {
		return nil, place.path
	}
	if st.kind != kindFile || st.key() == t.st.key() && st.ino != 0 {
		return nil, ""
	}
	owner, ok, err := w.isDebugOf(place, st, id)
	if ofRun(err) != nil { // it may be the one: t's row is not to remember it as another
		w.ix.unreadable(place.path, err, false)
		return nil, place.path
	}
	if !ok {
		return nil, refused(place.path, st)
	}
	real, err := files.Real(place.path)
	if err != nil {
		return nil, place.path
	}
	return &fileTask{
		ds: t.ds, path: real, row: t.row, st: st, class: container.TypeELF, owner: owner, debug: true,
		runtime: t.path,
	}, ""
}

// isDebugOf reports whether a file is the debug file of an object: by an equal build ID, and if it
// was found by .gnu_debuglink by the CRC, too. owner is set if the file itself does not identify
// its object. The error is why it could not be read.
func (w *fileReader) isDebugOf(place debugPlace, st fileStat, id buildid.ID) (
	owner buildid.ID, ok bool, err error) {
	f, err := files.Open(place.path)
	if err != nil {
		return owner, false, err
	}
	defer f.Close()
	var reads files.Reads
	defer func() {
		if failure := reads.Err(); failure != nil {
			ok, err = false, failure
		}
	}()
	ef, err := elf.Open(place.path, reads.Of(f), int64(st.size))
	if err != nil {
		return owner, false, err
	}
	if !ef.ID.IsZero() && id.Space() == buildid.GNU && !ef.ID.Matches(id) {
		return owner, false, nil
	}
	if ef.ID.IsZero() {
		owner = id
	}
	if !place.linked {
		return buildid.ID{}, owner.IsZero(), nil
	}
	sum, err := ef.CRC32()
	if err != nil || sum != place.crc {
		return owner, false, err
	}
	if id.Space() != buildid.GNU {
		owner = id // a file with a build ID for an object without one
	}
	return owner, true, nil
}

// refused is the form in which a row remembers a file that was there and was not the one: it is
// looked at again when it has become another.
func refused(path string, st fileStat) string {
	return fmt.Sprintf("%s\x00%d %d %d %d", path, st.dev, st.ino, st.size, st.ctime)
}

// places cuts a list of places to the limit of a row. The first ones count.
func places(looked []string) []string {
	var out []string
	for _, l := range looked {
		if len(out) < maxRowLooked && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// stale reports whether one of the places that had no debug file, or the wrong one, has another
// now.
func (ix *index) stale(looked []string) bool {
	for _, l := range looked {
		path, _, was := strings.Cut(l, "\x00")
		st, err := ix.absent.stat(path)
		if err != nil {
			continue
		}
		if !was || refused(path, st) != l {
			return true
		}
	}
	return false
}

// newRoot reports whether one of the debug roots was not searched when a file's row was made,
// although others were.
func (ix *index) newRoot(looked []string) bool {
	if len(looked) >= maxRowLooked { // the row may lack it
		return false
	}
	in := func(root string) bool {
		return slices.ContainsFunc(looked, func(path string) bool {
			return strings.HasPrefix(path, filepath.Join(root, buildIDDir))
		})
	}
	return slices.ContainsFunc(looked, func(path string) bool { return strings.Contains(path, buildIDDir) }) &&
		slices.ContainsFunc(ix.opts.DebugRoots, func(root string) bool { return !in(root) })
}

// buildIDDir is the part of paths of buildid.DebugPaths between the root and the build ID.
const buildIDDir = "/.build-id/"

// absent stats files most of which are not there. It remembers which directories are not, so that a
// thousand objects without debug files cost one stat for each of those.
type absent struct {
	mu   sync.Mutex
	dirs map[string]bool // true: there is no such directory
}

var errAbsent = errors.New("no such directory")

func (a *absent) stat(path string) (fileStat, error) {
	if a.missing(filepath.Dir(path)) {
		return fileStat{}, errAbsent
	}
	return statFile(path)
}

// missing reports whether a directory is not there.
func (a *absent) missing(dir string) bool {
	a.mu.Lock()
	gone, known := a.dirs[dir]
	a.mu.Unlock()
	if known {
		return gone
	}
	if up := filepath.Dir(dir); up != dir && a.missing(up) {
		gone = true
	} else {
		_, err := statFile(dir)
		gone = err != nil && isMissing(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dirs == nil {
		a.dirs = make(map[string]bool)
	}
	a.dirs[dir] = gone
	return gone
}
