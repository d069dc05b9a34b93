package indexer

import (
	stdelf "debug/elf"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/ingest/input/container"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/symlist"
	"symbolize/store"
	"symbolize/store/symtab"
)

// headLen is the size of a file's beginning that is read to identify it, bytes.
const headLen = container.HeadBytes

// fileReader reads files and directories in one goroutine; its buffers live from task to task.
type fileReader struct {
	ix      *index
	dirBuf  []byte
	head    [headLen]byte
	builder *symtab.Builder // nil until it is needed
	rules   *cfi.Builder    // nil until it is needed
	task    *fileTask       // being read, see advance
	debug   *fileTask       // the debug file of task that was found, see debugFiles
	reads   *files.Reads    // of its files
}

func newFileReader(ix *index) *fileReader {
	return &fileReader{ix: ix, dirBuf: make([]byte, 64<<10)}
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

// put adds a row, of a file that was read unless it is unchanged.
func (ds *dirState) put(row store.PathRow, changed bool) {
	ds.mu.Lock()
	ds.rows = append(ds.rows, row)
	ds.changed = ds.changed || changed
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

// release ends a hold. The last one writes the rows if they have changed.
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
// root. mounts is the root if it is seen through a link of /proc, with the mounts of a process.
func (w *fileReader) scanDir(dir, mounts string, parent uint64) {
	ix := w.ix
	d, err := openDir(dir)
	if err != nil {
		ix.unreadable(dir, err, parent == 0)
		return
	}
	defer d.close()
	self, err := d.self()
	if err == nil && (!ix.visited.enter(dirKey{self.key(), mounts}) ||
		parent != 0 && self.dev != parent && d.isPseudo()) {
		return
	}
	ds := ix.newDirState(dir)
	defer ds.release()
	entries, err := d.list(w.dirBuf)
	if err != nil {
		ix.unreadable(dir, err, parent == 0)
		ds.broken = true
	}
	scan := dirScan{fileReader: w, ds: ds, d: d, links: filepath.Base(filepath.Dir(dir)) == ".build-id"}
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
		ix.queue.pushDir(func(w *fileReader) { w.scanDir(sub, mounts, self.dev) })
	}
	scan.report(1)
}

// namedFiles is the task of files that the user named, in one directory. Rows of other files stay.
func (w *fileReader) namedFiles(dir string, names []string) {
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
			ds.put(ds.old[i], false)
		}
	}
	scan := dirScan{fileReader: w, ds: ds, d: d, named: true}
	for _, name := range names {
		scan.file(name, true) // only a link of /proc is one
	}
	scan.report(0)
}

// dirScan reads the entries of one directory.
type dirScan struct {
	*fileReader
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
			s.ds.ix.unreadable(path, err, s.named)
		}
		return ""
	}
	if follow {
		if path, err = files.Real(path); err != nil {
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
	device := s.ds.ix.devices.mapped(st.dev, path)
	if old != nil && !s.ds.ix.opts.Again && matches(&st, device, old, s.ds.ix.producer(old.ID)) &&
		!s.ds.ix.stale(old.Looked) && !s.ds.ix.newRoot(old.Looked) {
		s.unchangedFile(path, old)
	} else {
		s.newFile(name, path, st, device)
	}
	return ""
}

// newFile looks into a file that no row knows, and queues it if it looks like an
// object.
func (s *dirScan) newFile(name, path string, st fileStat, device uint64) {
	row := rowOf(&st, device, name, s.ds.ix.producer(buildid.ID{}))
	if since := time.Now().UnixNano() - st.ctime; since >= 0 && since < int64(racy) {
		row.Producer = 0 // it may change again without a trace: read it again next time
	}
	class := container.TypeUnknown
	if st.size > 0 {
		n, err := s.d.head(name, s.head[:])
		if err != nil {
			s.ds.ix.unreadable(path, err, s.named)
			return
		}
		class = classify(filepath.Base(path), s.head[:n], s.named)
	}
	switch {
	case class == container.TypeUnknown && s.named:
		s.ds.ix.problem(Problem{Path: path, Err: errNoObject, Named: true})
	case class == container.TypeUnknown:
		s.ds.put(row, true)
	default:
		s.objects++
		s.size += st.size
		s.ds.hold()
		t := &fileTask{ds: s.ds, path: path, row: row, st: st, class: class, named: s.named}
		s.ds.ix.queue.pushObject(st.size, t.run)
	}
}

// unchangedFile counts a file by its row.
func (s *dirScan) unchangedFile(path string, row *store.PathRow) {
	if lacksAliases(row) {
		s.ds.hold()
		s.ds.ix.queue.pushObject(0, func(w *fileReader) { w.addAliases(s.ds, path, *row) })
	} else {
		s.ds.put(*row, false)
	}
	s.unchanged++
	if row.ID.IsZero() && row.Error == "" {
		if s.named {
			s.ds.ix.problem(Problem{Path: path, Err: errNoObject, Named: true})
		}
		return
	}
	s.elf++
	s.ds.ix.count(func(sum *Summary) {
		if !row.ID.IsZero() {
			s.ds.ix.seen(row.ID, path)
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
	s.ds.ix.progress(func(p *Progress) {
		s.ds.ix.sum.Dirs += dirs
		s.ds.ix.sum.Files += s.files
		s.ds.ix.sum.Unchanged += s.unchanged
		s.ds.ix.sum.ELF += s.elf
		p.Dirs += dirs
		p.Files += s.files
		p.Objects += s.objects
		p.Size += s.size
	})
}

// visited are the directories that were entered.
type visited struct {
	mu   sync.Mutex
	dirs map[dirKey]bool
}

// enter reports whether a directory is met for the first time.
func (v *visited) enter(key dirKey) bool {
	if key.file.ino == 0 {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dirs[key] {
		return false
	}
	if v.dirs == nil {
		v.dirs = make(map[dirKey]bool)
	}
	v.dirs[key] = true
	return true
}

// unreadable notes a file or directory that could not be opened. It leaves no row: the next run
// tries again.
func (ix *index) unreadable(path string, err error, named bool) {
	ix.count(func(s *Summary) {
		p := Problem{Path: path, Err: pathReason(err), Named: named, Run: ofRun(err) != nil}
		skip := SkipUnreadable
		if p.Run {
			skip, p.Hint = SkipFailed, hintFor(SkipFailed, err)
		}
		s.Skipped[skip]++
		s.Problems = append(s.Problems, p)
	})
}

// addRoots queues the paths of the command line. Symbolic links are followed here; roots inside
// other roots are dropped.
func (ix *index) addRoots(paths []string) {
	var trees []string
	files := make(map[string][]string) // by directory
	for _, p := range paths {
		st, real, err := resolveRoot(p)
		switch {
		case err != nil:
			ix.problem(Problem{Path: p, Err: err, Named: true})
		case real == string(ix.opts.sys)+"/proc/kallsyms":
			ix.opts.Kernel = true
		case st.kind == kindDir:
			trees = append(trees, real)
		case st.kind == kindFile:
			dir := filepath.Dir(real)
			files[dir] = append(files[dir], filepath.Base(real))
			ix.named = append(ix.named, real)
		default:
			ix.problem(Problem{Path: p, Err: errors.New("neither file nor directory"), Named: true})
		}
	}
	slices.Sort(trees)
	var kept []string
	for _, d := range trees {
		if !slices.ContainsFunc(kept, func(k string) bool { return walks(k, d) }) {
			kept = append(kept, d)
			ix.pushDir(d, throughProc(d))
		}
	}
	ix.trees = kept
	for dir, names := range files {
		names = slices.DeleteFunc(names, func(name string) bool {
			path := filepath.Join(dir, name) // a walk reads it; rows of a directory have one writer
			return slices.ContainsFunc(kept, func(k string) bool { return walks(k, path) })
		})
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		names = slices.Compact(names)
		ix.queue.pushDir(func(w *fileReader) { w.namedFiles(dir, names) })
	}
}

// resolveRoot follows the links of a path that the user named.
func resolveRoot(p string) (fileStat, string, error) {
	real, err := files.Real(p)
	if err != nil {
		return fileStat{}, "", pathReason(err)
	}
	st, err := statFile(real)
	return st, real, err
}

// walks reports whether the walk of a root meets a path. It follows no links, those of /proc neither.
func walks(root, path string) bool {
	return inside(path, root) && (throughProc(root) != "" || throughProc(path) == "")
}

// inside reports whether path is dir or below it.
func inside(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// throughProc returns a result of files.Real if a link of /proc remains in it, otherwise "".
func throughProc(real string) string {
	if plain, err := filepath.EvalSymlinks(real); err == nil && plain == real {
		return ""
	}
	return real
}

// errNoObject is for a file that the user named.
var errNoObject = errors.New("no object: neither ELF, nor a packed kernel module, nor kallsyms")

// classify returns the type of a file that can be an object, else container.TypeUnknown. Packed
// files are unpacked only where the name promises a kernel module or the user named the file:
// manuals and logs are packed too.
func classify(name string, head []byte, named bool) container.Type {
	_, isMap := symlist.PerfMapPID(name)
	switch t := container.TypeOfHead(head); {
	case isMap && (t == container.TypePerfMap || t == container.TypeKallsyms): // sizes pass for types
		return container.TypePerfMap
	case t == container.TypeELF,
		t.Packed() && (named || strings.Contains(name, ".ko.") || isPackedKallsyms(name)),
		t == container.TypeKallsyms && (named || name == "kallsyms"), t == container.TypeJITDump,
		t == container.TypePerfMap && named:
		return t
	}
	return container.TypeUnknown
}

// isPackedKallsyms reports whether a name is that of a packed copy of /proc/kallsyms: kallsyms.xz.
func isPackedKallsyms(name string) bool {
	ext := filepath.Ext(name)
	return strings.TrimSuffix(name, ext) == "kallsyms" && slices.Contains([]string{".xz", ".gz", ".zst"}, ext)
}

// fileKind is the type of a directory entry.
type fileKind uint8

const (
	kindOther fileKind = iota // devices, sockets and pipes
	kindFile
	kindDir
	kindLink
	kindUnknown // the file system does not report it: stat does
)

// fileStat is the part of a file's stat that a path row keeps.
type fileStat struct {
	kind     fileKind
	dev, ino uint64
	size     uint64 // bytes
	mtime    int64  // ns since 1970
	ctime    int64  // likewise
}

// fileKey identifies a file by its inode, independent of its path.
type fileKey struct{ dev, ino uint64 }

func (s *fileStat) key() fileKey { return fileKey{s.dev, s.ino} }

// dirKey identifies a directory with what is mounted below it.
type dirKey struct {
	file   fileKey
	mounts string // see scanDir
}

// dirEntry is one entry of a directory.
type dirEntry struct {
	name string
	kind fileKind
}

// FileRow returns the path row of a file, with the ID under which Index files its object, or the
// zero ID if the file is not an object. It follows links and reads no symbols. With content, a
// program without build ID is read once, for the hash of its content; otherwise it has no ID.
// Producer is 0: nothing is indexed.
func FileRow(path string, content bool) (store.PathRow, error) {
	st, err := statFile(path)
	if err != nil {
		return store.PathRow{}, pathReason(err)
	}
	row := rowOf(&st, st.dev, filepath.Base(path), 0)
	f, err := files.Open(path)
	if err != nil {
		return row, pathReason(err)
	}
	defer f.Close()
	row.Dev = files.MappedDevice(f, st.dev)
	row.Gen = generation(f)
	ef, err := elf.Open(path, f, int64(st.size))
	if err != nil {
		return row, err
	}
	if row.ID = ef.ID; !row.ID.IsZero() || !content || ef.Type == stdelf.ET_CORE {
		return row, nil // the hash of /proc/kcore would have no end
	}
	row.ID, err = (&fileTask{}).objectID(ef)
	return row, err
}

// FileSegments returns the PT_LOAD segments of an ELF file, and its machine.
func FileSegments(path string) (list []elf.Segment, machine uint16, err error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, 0, pathReason(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, 0, pathReason(err)
	}
	ef, err := elf.Open(path, f, fi.Size())
	if err != nil {
		return nil, 0, err
	}
	return ef.Segments, uint16(ef.Machine), nil
}

// devices has the devices of mappings for those of stat.
type devices struct {
	mu    sync.Mutex
	known map[uint64]uint64
}

// mapped is files.MappedDevice. It opens one file of each device.
func (d *devices) mapped(stat uint64, path string) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dev, ok := d.known[stat]; ok {
		return dev
	}
	f, err := files.Open(path)
	if err != nil {
		return stat
	}
	defer f.Close()
	if d.known == nil {
		d.known = make(map[uint64]uint64)
	}
	d.known[stat] = files.MappedDevice(f, stat)
	return d.known[stat]
}

// rowOf returns a new row for the file, which mappings have on that device, as a decoder of that
// revision reads it.
func rowOf(s *fileStat, device uint64, name string, producer uint32) store.PathRow {
	return store.PathRow{
		Name: name, Dev: device, Inode: s.ino, Size: s.size, MtimeNs: s.mtime, CtimeNs: s.ctime,
		Producer: producer,
	}
}

// matches reports whether a row was made of this very file, which mappings have on that device, by
// a decoder of that revision or a newer one, with everything that this run needs.
func matches(s *fileStat, device uint64, r *store.PathRow, producer uint32) bool {
	now := buildid.FileProof{Dev: device, Inode: s.ino, Size: s.size,
		MtimeNs: s.mtime, CtimeNs: s.ctime}
	return r.Proof().Same(now) && r.Producer >= producer &&
		(r.Producer != typesProducer || producer != callsProducer) &&
		(r.Producer >= Producer || r.Producer == producer || producer == bareProducer)
}

// Bounds on the content of a row; the store refuses rows that have far more.
const (
	maxRowError  = 1 << 10 // bytes of a message
	maxRowLooked = 60      // places of debug files
)

// racy is how long after its last change a file may change again without any difference in its
// times: the clocks of file systems tick that slowly.
const racy = 20 * time.Millisecond
