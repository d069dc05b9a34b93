package indexer

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"symbolize/ingest/format/container"
	"symbolize/store"
	"symbolize/store/symtab"
)

// headLen is the size of a file's beginning that is read to identify it, bytes.
const headLen = container.HeadBytes

// worker holds one goroutine's buffers, which live from task to task.
type worker struct {
	ix      *index
	dirBuf  []byte
	head    [headLen]byte
	builder *symtab.Builder
	task    *fileTask // being read, see advance
}

func newWorker(ix *index) *worker {
	return &worker{ix: ix, dirBuf: make([]byte, 64<<10), builder: ix.newBuilder()}
}

// dirState collects the rows of one directory until all its files are done.
type dirState struct {
	ix  *index
	dir string
	old store.DirRows

	mu      sync.Mutex
	rows    store.DirRows
	pending int  // files in work, and one for the scan
	changed bool // some row differs from the old ones
	broken  bool // the listing is incomplete: old rows must stay

	refused map[string][]string // for Looked of the rows with these names
}

func (ix *index) newDirState(dir string) *dirState {
	old, _, err := ix.view.Dir(dir)
	if err != nil {
		old = nil // damaged rows: all is read again, which repairs them
	}
	return &dirState{ix: ix, dir: dir, old: old, pending: 1}
}

// keep copies the row of an unchanged file.
func (ds *dirState) keep(row *store.PathRow) {
	ds.mu.Lock()
	ds.rows = append(ds.rows, *row)
	ds.mu.Unlock()
}

// put adds the row of a file that was read.
func (ds *dirState) put(row store.PathRow) {
	ds.mu.Lock()
	ds.rows = append(ds.rows, row)
	ds.changed = true
	ds.mu.Unlock()
}

// refuse notes for the row of a file a debug file that could not be read: when it has become
// another, the row is stale.
func (ds *dirState) refuse(name string, looked ...string) {
	if len(looked) == 0 {
		return
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.refused == nil {
		ds.refused = make(map[string][]string)
	}
	ds.refused[name] = append(ds.refused[name], looked...)
}

func (ds *dirState) hold() {
	ds.mu.Lock()
	ds.pending++
	ds.mu.Unlock()
}

// release gives up a hold. The last one writes the rows if they have changed.
func (ds *dirState) release() {
	ds.mu.Lock()
	ds.pending--
	last := ds.pending == 0
	ds.mu.Unlock()
	if !last || ds.broken || ds.ix.ctx.Err() != nil {
		return
	}
	if !ds.changed && len(ds.rows) == len(ds.old) {
		return
	}
	rows := ds.rows.Sort()
	for name, looked := range ds.refused {
		if row := rows.Find(name); row != nil {
			row.Looked = places(append(looked, row.Looked...)) // a row keeps the first ones
		}
	}
	ds.ix.putDir(ds.dir, rows)
}

// scanDir is the task of one directory. parent is the device that the walk comes from; 0 for a
// root.
func (w *worker) scanDir(dir string, parent uint64) {
	ix := w.ix
	d, err := openDir(dir)
	if err != nil {
		ix.unreadable(dir, err, parent == 0)
		return
	}
	defer d.close()
	self, err := d.self()
	if err == nil && (!ix.enter(self.key()) || parent != 0 && self.dev != parent && d.isPseudo()) {
		return
	}
	ds := ix.newDirState(dir)
	defer ds.release()
	entries, err := d.list(w.dirBuf)
	if err != nil {
		ix.unreadable(dir, err, parent == 0)
		ds.broken = true
	}
	scan := dirScan{worker: w, ds: ds, d: d, links: filepath.Base(filepath.Dir(dir)) == ".build-id"}
	var subdirs []string
	for _, e := range entries {
		if ix.ctx.Err() != nil {
			return
		}
		if sub := scan.entry(e); sub != "" {
			subdirs = append(subdirs, sub)
		}
	}
	for _, sub := range slices.Backward(subdirs) {
		ix.queue.pushDir(func(w *worker) { w.scanDir(sub, self.dev) })
	}
	scan.report(1)
}

// namedFiles is the task of files that the user named, in one directory. Rows of other files stay.
func (w *worker) namedFiles(dir string, names []string) {
	d, err := openDir(dir)
	if err != nil {
		w.ix.unreadable(dir, err, true)
		return
	}
	defer d.close()
	ds := w.ix.newDirState(dir)
	defer ds.release()
	for i := range ds.old {
		if !slices.Contains(names, ds.old[i].Name) {
			ds.keep(&ds.old[i])
		}
	}
	scan := dirScan{worker: w, ds: ds, d: d, named: true}
	for _, name := range names {
		scan.file(name, false)
	}
	scan.report(0)
}

// dirScan reads the entries of one directory.
type dirScan struct {
	*worker
	ds    *dirState
	d     dirHandle
	named bool // the user named these files
	links bool // symbolic links are followed: the directory is .build-id/xx

	files, unchanged, elf, objects uint64
	size                           uint64 // of objects, bytes
}

// entry checks one entry. It returns the path of a directory to continue with.
func (s *dirScan) entry(e dirEntry) (subdir string) {
	if e.kind == kindUnknown {
		st, err := s.d.stat(e.name, false)
		if err != nil {
			return ""
		}
		e.kind = st.kind
	}
	switch {
	case e.kind == kindDir:
		return filepath.Join(s.ds.dir, e.name)
	case e.kind == kindFile:
		s.file(e.name, false)
	case e.kind == kindLink && s.links:
		return s.file(e.name, true)
	}
	return ""
}

// file checks one regular file, or with follow the target of a link; if that is a directory,
// its real path is returned.
func (s *dirScan) file(name string, follow bool) (subdir string) {
	st, err := s.d.stat(name, follow)
	path := filepath.Join(s.ds.dir, name)
	if err != nil {
		if !isMissing(err) || s.named { // a link to nothing, or just deleted
			s.ix.unreadable(path, err, s.named)
		}
		return ""
	}
	if follow {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return ""
		}
	}
	if st.kind == kindDir {
		return path
	}
	if st.kind != kindFile {
		return ""
	}
	s.files++
	old := s.ds.old.Find(name)
	if old != nil && matches(&st, old, s.ix.producer()) && !s.ix.stale(old.Looked) {
		s.unchangedFile(path, old)
	} else {
		s.newFile(name, path, st)
	}
	return ""
}

// newFile looks into a file that no row knows, and queues it if it looks like an
// object.
func (s *dirScan) newFile(name, path string, st fileStat) {
	row := rowOf(&st, name, s.ix.producer())
	if since := time.Now().UnixNano() - st.ctime; since >= 0 && since < int64(racy) {
		row.Producer = 0 // it may change again without a trace: read it again next time
	}
	class := container.TypeUnknown
	if st.size > 0 {
		n, err := s.d.head(name, s.head[:])
		if err != nil {
			s.ix.unreadable(path, err, s.named)
			return
		}
		class = classify(filepath.Base(path), s.head[:n], s.named)
	}
	switch {
	case class == container.TypeUnknown && s.named:
		s.ix.problem(Problem{Path: path, Err: errNoObject, Named: true})
	case class == container.TypeUnknown:
		s.ds.put(row)
	default:
		s.objects++
		s.size += st.size
		s.ds.hold()
		t := &fileTask{ds: s.ds, path: path, row: row, st: st, class: class, named: s.named}
		s.ix.queue.pushObject(st.size, t.run)
	}
}

// unchangedFile counts a file by its row.
func (s *dirScan) unchangedFile(path string, row *store.PathRow) {
	s.ds.keep(row)
	s.unchanged++
	if row.ID.IsZero() && row.Error == "" {
		if s.named {
			s.ix.problem(Problem{Path: path, Err: errNoObject, Named: true})
		}
		return
	}
	s.elf++
	s.ix.count(func(sum *Summary) {
		if !row.ID.IsZero() {
			s.ix.seen(row.ID, path)
		}
		if row.Error != "" {
			sum.Skipped[damageKind(row.Error)]++
			sum.Problems = append(sum.Problems, Problem{Path: path, Err: errors.New(row.Error),
				Named: s.named, Kept: !row.ID.IsZero()})
		}
	})
}

// report adds the counts to the Summary.
func (s *dirScan) report(dirs uint64) {
	s.ix.progress(func(p *Progress) {
		s.ix.sum.Dirs += dirs
		s.ix.sum.Files += s.files
		s.ix.sum.Unchanged += s.unchanged
		s.ix.sum.ELF += s.elf
		p.Dirs += dirs
		p.Files += s.files
		p.Objects += s.objects
		p.Size += s.size
	})
}

// enter reports whether a directory is met for the first time.
func (ix *index) enter(key fileKey) bool {
	if key.ino == 0 {
		return true
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.dirs[key] {
		return false
	}
	ix.dirs[key] = true
	return true
}

// unreadable notes a file or directory that could not be opened. It leaves no row: the next run
// tries again.
func (ix *index) unreadable(path string, err error, named bool) {
	ix.count(func(s *Summary) {
		p := Problem{Path: path, Err: pathReason(err), Named: named, Run: ofRun(err) != nil}
		skip := SkipUnreadable
		if p.Run {
			skip, p.Hint = SkipFailed, hintFor(SkipFailed)
		}
		s.Skipped[skip]++
		s.Problems = append(s.Problems, p)
	})
}
