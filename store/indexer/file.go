package indexer

import (
	stdelf "debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/input/container"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/bpfobj"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/symlist"
	"symbolize/store"
	"symbolize/store/bpfprog"
)

// fileTask is one file that is to be read.
type fileTask struct {
	ds    *dirState // of the directory with rows that wait for this file
	path  string    // without links
	row   store.PathRow
	st    fileStat
	class container.Type
	named bool
	// owner is set for a debug file without build ID that a runtime file was linked to: the object
	// it belongs to. It then has no row of its own.
	owner buildid.ID
	// debug is set for a file that was found as another file's debug file: row is the row of the
	// other file.
	debug   bool
	runtime string // with debug: that one's path

	counted uint64 // bytes that Progress.Bytes has
}

// fileResult is the result of reading a file.
type fileResult struct {
	id     buildid.ID
	looked []string
	err    error  // of the file, or of a part of it
	skip   string // the reason why it is left out, a key of Summary.Skipped
	again  bool   // the next run is to read it again: no row
	gen    uint64 // the inode's generation, 0 if it is not known
}

// run reads the file, and then lets its directory's rows go.
func (t *fileTask) run(w *fileReader) {
	defer t.ds.release()
	ix := w.ix
	if ix.ctx.Err() != nil {
		return
	}
	w.task = t
	res := t.read(w)
	w.task = nil
	if d := w.debug; d != nil {
		w.debug = nil
		d.push(ix)
	}
	ix.progress(func(p *Progress) {
		p.Done++
		p.Bytes += t.st.size - t.counted
		if res.skip != "" {
			ix.sum.Skipped[res.skip]++
		}
		if !res.id.IsZero() {
			ix.seen(res.id, t.path)
		}
		err := res.err
		ended := res.again && ix.ctx.Err() != nil // by an error that is Index's, or the context's
		if err == nil && t.named && res.id.IsZero() && !ended {
			err = fmt.Errorf("no object: %s", res.skip)
		}
		if err != nil {
			ix.sum.Problems = append(ix.sum.Problems,
				Problem{Path: t.path, Err: err, Hint: hintFor(res.skip, err),
					Named: t.named, Kept: !res.id.IsZero(), Run: res.skip == SkipFailed})
		}
	})
	if t.debug {
		switch {
		case res.again: // as it is now
			t.ds.refuse(t.row.Name, t.path)
		case res.err != nil:
			t.ds.refuse(t.row.Name, refused(t.path, t.st))
		}
		t.ds.refuse(t.row.Name, res.looked...)
	}
	if t.debug || res.again {
		return
	}
	if !res.id.IsZero() || res.err != nil {
		ix.count(func(s *Summary) { s.ELF++ })
	}
	if t.row.Producer != 0 {
		t.row.Producer = ix.producer(res.id)
	}
	t.row.ID, t.row.Gen, t.row.Looked = res.id, res.gen, places(res.looked)
	t.row.Aliased = !res.id.IsZero()
	if res.err != nil {
		t.row.Error = Problem{Path: t.path, Err: res.err}.reason()
		t.row.Error = t.row.Error[:min(len(t.row.Error), maxRowError)]
	}
	t.ds.put(t.row, true)
}

// push queues the debug file that a file has; the rows of its directory wait for it.
func (t *fileTask) push(ix *index) {
	t.ds.hold()
	ix.progress(func(p *Progress) {
		p.Objects++
		p.Size += t.st.size
	})
	ix.queue.pushObject(t.st.size, t.run)
}

// advance moves Progress.Bytes to a share of the present file: done of total.
func (w *fileReader) advance(done, total uint64) {
	t := w.task
	if t == nil || total == 0 {
		return
	}
	at := uint64(float64(t.st.size) * min(float64(done)/float64(total), 1))
	if more := at - min(at, t.counted); more > 0 {
		t.counted = at
		w.ix.progress(func(p *Progress) { p.Bytes += more })
	}
}

func hintFor(skip string, err error) string {
	switch skip {
	case SkipIncomplete:
		if strings.Contains(err.Error(), dwzFile) {
			return "index it with --debug-root DIR, where DIR has the dwz file in .dwz/ or .build-id/"
		}
	case SkipKallsymsNo:
		return "keep it as BUILDID/kallsyms, or name its build ID with --build-id"
	case SkipFailed:
		if run := ofRun(err); run != nil && !run.lacksRoom() {
			return "the file system could not read it: run it again when it can"
		}
		return "run it again with more space: $TMPDIR is where large sections are inflated"
	}
	return ""
}

// read reads the file unless that was done under another path.
func (t *fileTask) read(w *fileReader) fileResult {
	if !t.owner.IsZero() {
		return w.readFile(t, true)
	}
	turn := w.ix.claims.begin(t.st.key(), t.path, !t.debug)
	res := turn.res
	if turn.read {
		res = w.readFile(t, turn.first)
		turn.finish(res)
	} else if t.complements(w, res) {
		if more := w.readFile(t, false); more.err == nil {
			res = more
			w.ix.count(func(*Summary) { w.ix.completed[t.path] = true })
		}
	}
	if !turn.first {
		res.skip = ""
	}
	if turn.again {
		res.skip = SkipDuplicate
	}
	return res
}

// complements reports whether a file that was read on its own, before it was found as a
// debug file, lacks units that may be in the .dwp file next to its runtime file.
func (t *fileTask) complements(w *fileReader, res fileResult) bool {
	if t.runtime == "" || res.err == nil || damageKind(res.err.Error()) != SkipIncomplete {
		return false
	}
	_, err := w.ix.absent.stat(packageOf(t.runtime))
	return err == nil
}

// readFile opens and reads a file. With count its numbers go into the Summary.
func (w *fileReader) readFile(t *fileTask, count bool) fileResult {
	f, err := files.Open(t.path)
	if err != nil {
		res := fileResult{err: pathReason(err), skip: SkipUnreadable, again: true}
		return res.blame()
	}
	defer f.Close()
	w.reads = &files.Reads{}
	data := w.reads.Of(f)
	if faulty := w.ix.opts.faulty; faulty != nil {
		data = w.reads.Of(faulty(f))
	}
	var res fileResult
	switch t.class {
	case container.TypeKallsyms:
		res = w.readKallsyms(t, data, int64(t.st.size), count)
	case container.TypePerfMap, container.TypeJITDump:
		res = w.readJIT(t, data, count)
	case container.TypeGzip, container.TypeXZ, container.TypeZstd:
		res = w.readPacked(t, data, count)
	default:
		res = w.readObject(t, data, int64(t.st.size), count)
	}
	if err := w.reads.Err(); err != nil && ofRun(res.err) == nil {
		res.err = &runError{err}
	}
	res = res.blame()
	res.gen = generation(f)
	now, err := statFile(t.path)
	if err != nil || now != t.st {
		return fileResult{err: errChanged, skip: SkipChanged, again: true}
	}
	return res
}

// blame separates a failure of the run from one of the file. A limit may be another in the next
// run.
func (res fileResult) blame() fileResult {
	if err := ofRun(res.err); err != nil {
		res.err, res.skip, res.again = err, SkipFailed, true
	}
	res.again = res.again || res.skip == SkipLimit
	return res
}

var errChanged = errors.New("changed while it was read")

// readPacked reads a packed kernel module, or a packed copy of /proc/kallsyms.
func (w *fileReader) readPacked(t *fileTask, data io.ReaderAt, count bool) fileResult {
	size := int64(t.st.size)
	// The output is held in memory, and its size is not known before. Modules
	// shrink to a third or a quarter; their symbols and lines come on top.
	hold, err := w.ix.budget.Acquire(w.ix.ctx, packedCost*size)
	if err != nil {
		return fileResult{err: err, again: true}
	}
	defer w.ix.budget.Release(hold)
	data, size, _, err = files.UnpackWith(t.path, data, size, files.UnpackOptions{
		Limit: max(w.ix.opts.MaxMemory, packedCost*size), Stop: w.ix.ctx.Err,
	})
	if w.ix.ctx.Err() != nil {
		return fileResult{again: true}
	}
	if err != nil {
		return damagedFile(err)
	}
	head := make([]byte, min(headLen, size))
	if n, _ := data.ReadAt(head, 0); symlist.IsKallsyms(head[:n]) {
		return w.readKallsyms(t, data, size, count)
	}
	return w.readObject(t, data, size, count)
}

// readObject reads an ELF file of size bytes.
func (w *fileReader) readObject(t *fileTask, data io.ReaderAt, size int64, count bool) fileResult {
	ef, err := elf.Open(t.path, data, size)
	if err != nil {
		return damagedFile(err)
	}
	if bpfobj.Is(ef) && !w.ix.opts.Relocatable {
		return w.readBPFObject(t, ef, count)
	}
	if skip := w.ix.skipReason(ef); skip != "" {
		return fileResult{skip: skip}
	}
	id, err := t.objectID(ef)
	if err != nil {
		return damagedFile(err)
	}
	if id.IsZero() {
		return fileResult{skip: SkipDebugNoID}
	}
	return w.mergeObject(t, data, ef, id, count)
}

// mergeObject merges an ELF file's contribution, and looks for its debug file.
func (w *fileReader) mergeObject(t *fileTask, data io.ReaderAt, ef *elf.File, id buildid.ID,
	count bool) fileResult {
	cost := estimate(data, ef, w.ix.opts.NamesOnly)
	if t.class.Packed() {
		cost = 0 // two holds at a time could wait for one another
	}
	hold, err := w.ix.budget.Acquire(w.ix.ctx, cost)
	if err != nil {
		return fileResult{err: err, again: true}
	}
	c, looked, err := w.contribution(t.path, t.runtime, data, ef, id)
	if w.ix.ctx.Err() != nil { // tables may have been cut short
		w.ix.budget.Release(hold)
		return fileResult{again: true}
	}
	if err := w.reads.Err(); err != nil { // a decoder may have passed over it
		w.ix.budget.Release(hold)
		return fileResult{err: &runError{err}}
	}
	mergeErr := w.ix.merge(c, count)
	w.ix.budget.Release(hold)
	if mergeErr == nil && !t.class.Packed() {
		mergeErr = w.ix.aliases(data, ef, &c.Manifest)
	}
	if mergeErr != nil {
		return notMerged(mergeErr)
	}
	res := fileResult{id: id, err: err, looked: looked}
	if err != nil {
		res.skip = damageKind(err.Error())
		res.again = errors.Is(err, errChanged)
	}
	if count {
		w.countObject(&c.Manifest, ef)
	}
	if isRuntime(ef) && !w.ix.opts.UnwindOnly {
		res.looked = append(res.looked, w.debugFiles(t, ef, id)...)
	}
	return res
}

// damageKind is the kind that an error of a file is counted as.
func damageKind(reason string) string {
	switch {
	case strings.Contains(reason, limitReached):
		return SkipLimit
	case strings.Contains(reason, incomplete):
		return SkipIncomplete
	}
	return SkipDamaged
}

// notMerged is the result of a file that the sink refused. An error that ended the run is Index's
// error, and no problem of the file.
func notMerged(err error) fileResult {
	if errors.Is(err, store.ErrTooLarge) {
		return fileResult{err: err, skip: SkipTooLarge}
	}
	return fileResult{again: true}
}

// packedCost is the working memory per byte of a packed module.
const packedCost = 12

func damagedFile(err error) fileResult {
	return fileResult{err: err, skip: damageKind(err.Error())}
}

// objectID returns the ID that an object is filed under: its build ID, or for a runtime file the
// SHA-1 of its content. It is zero for debug files without one.
func (t *fileTask) objectID(ef *elf.File) (buildid.ID, error) {
	switch {
	case !t.owner.IsZero():
		return t.owner, nil
	case !ef.ID.IsZero():
		return ef.ID, nil
	case ef.IsDebugOnly() && !t.ds.ix.opts.Relocatable:
		return buildid.ID{}, nil
	}
	id, err := ef.ContentID()
	if err != nil {
		return id, fmt.Errorf("content: %w", err)
	}
	return id, nil
}

// countObject counts an object that was read.
func (w *fileReader) countObject(m *store.Manifest, ef *elf.File) {
	w.ix.count(func(s *Summary) {
		s.Read++
		s.Raw += uint64(ef.Size())
		if w.ix.demangler(m.ID) != nil {
			s.Demangled++
		}
		if m.ID.Space() == buildid.Content {
			s.NoBuildID++
		}
		if ef.IsDebugOnly() {
			s.Debug++
		}
		s.countKind(m.Kind)
	})
}

// readBPFObject merges the functions of a BPF object file. Each is an object of its own
// with a table over its BPF code; it is also entered under its tags and its name, and a
// program under its name and number of instructions, for captures and texts that have no
// more of it.
func (w *fileReader) readBPFObject(t *fileTask, ef *elf.File, count bool) fileResult {
	obj, err := bpfobj.Read(ef)
	if err := w.reads.Err(); err != nil {
		return fileResult{err: &runError{err}}
	}
	if len(obj.Functions) == 0 {
		if err != nil {
			return damagedFile(err)
		}
		return fileResult{skip: SkipRelocatable}
	}
	res := fileResult{err: err}
	if err != nil {
		res.skip = SkipDamaged
	}
	if count {
		w.countObject(&store.Manifest{Kind: ingest.JIT}, ef)
	}
	for i := range obj.Functions {
		id, err := w.bpfFunction(t, obj, &obj.Functions[i], count)
		if err != nil {
			return notMerged(err)
		}
		if res.id.IsZero() {
			res.id = id // of the file, which has none: the first one's
		}
	}
	return res
}

// bpfFunction merges a function of a BPF object file and returns its identity.
func (w *fileReader) bpfFunction(t *fileTask, obj *bpfobj.Object, fn *bpfobj.Function,
	count bool) (buildid.ID, error) {
	p := bpf.Program{Funcs: []bpf.Func{{Name: fn.Name, Length: fn.Length, Lines: fn.Lines}}}
	if len(fn.Tags) > 0 {
		p.Tag = fn.Tags[0]
	}
	table, err := bpfprog.LineTable(fn.Name, &p.Funcs[0])
	if err != nil {
		return buildid.ID{}, err
	}
	m := store.Manifest{ID: p.Identity(0, bpfprog.Machine), Kind: ingest.JIT,
		Machine: uint16(stdelf.EM_BPF), Class: uint8(stdelf.ELFCLASS64), BigEndian: obj.BigEndian}
	err = w.ix.merge(&store.Contribution{Manifest: m,
		Sources: []store.NewSource{store.SourceOf(store.JIT, t.path, table)}}, count)
	if err != nil {
		return buildid.ID{}, err
	}
	var aliases []buildid.ID
	for _, tag := range slices.Concat(fn.Tags, fn.OwnTags) {
		aliases = append(aliases, bpf.TagIdentity(tag))
	}
	// With subprograms perf knows a program by its own tag, which the kernel may rewrite.
	fixed := fn.Program && fn.Uncertain == "" && fn.Count*bpf.InsnSize == fn.Length
	aliases = append(aliases, bpf.NameIdentity(fn.Name, fixed))
	if fn.Count > 0 {
		aliases = append(aliases, bpf.CountIdentity(fn.Name, fn.Count))
	}
	for _, alias := range aliases {
		if err := w.ix.write(bpfprog.Alias(alias, m.ID)); err != nil {
			return buildid.ID{}, err
		}
	}
	return m.ID, nil
}
