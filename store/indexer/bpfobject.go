package indexer

import (
	stdelf "debug/elf"
	"errors"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/object/bpfobj"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/bpfprog"
)

// readBPFObject merges the functions of a BPF object file. Each is an object of its own
// with a table over its BPF code; it is also entered under its tags and its name, and a
// program under its name and number of instructions, for captures and texts that have no
// more of it.
func (w *worker) readBPFObject(t *fileTask, ef *elf.File, count bool) fileResult {
	obj, err := bpfobj.Read(ef)
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
func (w *worker) bpfFunction(t *fileTask, obj *bpfobj.Object, fn *bpfobj.Function,
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
	err = w.ix.merge(&store.Contribution{Manifest: m, Sources: []store.NewSource{{
		Info:  store.SourceInfo{Kind: store.JIT, Producer: Producer, Path: t.path},
		Table: table,
	}}}, count)
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
		if err := w.ix.mergeAlias(alias, m.ID); err != nil {
			return buildid.ID{}, err
		}
	}
	return m.ID, nil
}

// mergeAlias enters an object under the facts that a capture may have of it. An error ends the
// run.
func (ix *index) mergeAlias(alias, id buildid.ID) error {
	sink, err := ix.openSink()
	if err == nil {
		err = sink.Merge(ix.ctx, bpfprog.Alias(alias, id))
	}
	if err != nil && !errors.Is(err, store.ErrTooLarge) {
		ix.cancel(err)
	}
	return err
}
