package code

import (
	"path/filepath"
	"slices"

	"symbolize/analyze/annotate"
	"symbolize/analyze/disasm"
	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/bpfobj"
	"symbolize/store"
)

// bpfObject is a BPF object file.
type bpfObject struct {
	path string
	*bpfobj.Object
}

// openBPFObject reads a BPF object file; nil if it is another file, or damaged.
func openBPFObject(path string) *bpfObject {
	file, err := files.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	fi, err := file.Stat()
	if err != nil {
		return nil
	}
	f, err := unpackELF(path, file, fi.Size())
	if err != nil || !bpfobj.Is(f) {
		return nil
	}
	o, err := bpfobj.Read(f)
	if err != nil {
		return nil
	}
	return &bpfObject{path, o}
}

// bpfObjects returns the object files that may have a program: of the user's paths, and those from
// which the store knows its tags or names.
func (c *Finder) bpfObjects(p *bpf.Program) []*bpfObject {
	if c.objects == nil {
		c.objects = make(map[string]*bpfObject)
	}
	var paths []string
	for _, name := range c.o.Paths {
		inside, _ := filepath.Glob(filepath.Join(name, "*.o"))
		paths = append(append(paths, name), inside...)
	}
	for _, f := range p.Funcs {
		for _, id := range []buildid.ID{bpf.TagIdentity(p.Tag), bpf.TagIdentity(f.Tag),
			bpf.NameIdentity(f.Name, false), bpf.NameIdentity(f.Name, true)} {
			paths = append(paths, c.indexedPaths(id)...)
		}
	}
	var list []*bpfObject
	for _, path := range unique(paths) {
		o, known := c.objects[path]
		if !known {
			o = openBPFObject(path)
			c.objects[path] = o
		}
		if o != nil {
			list = append(list, o)
		}
	}
	return list
}

// indexedPaths returns the paths of the files that the store has under an alias of BPF functions.
func (c *Finder) indexedPaths(alias buildid.ID) (paths []string) {
	m, _, _ := store.FindOne(c.o.View, alias)
	if m == nil {
		return nil
	}
	for _, id := range m.Probable {
		if m, _, _ := store.FindOne(c.o.View, id); m != nil {
			for i := range m.Sources {
				paths = append(paths, m.Sources[i].Path)
			}
		}
	}
	return paths
}

// original returns the function of an object file that a loaded function comes from: by the tag of
// its program, else by its name and line records.
func (c *Finder) original(l *bpfLoad, in *bpf.Instructions) (*bpfObject, *bpfobj.Function) {
	if in.OneRun != "" {
		return nil, nil
	}
	p := l.program
	var probable *bpfObject
	var function *bpfobj.Function
	for _, o := range c.bpfObjects(p) {
		for i := range o.Functions {
			f := &o.Functions[i]
			if f.Name != p.Funcs[l.fn].Name || !containsRecords(f.Records, in.Runs) {
				continue
			}
			if o.hasTag(p.Tag) {
				return o, f
			}
			if probable == nil {
				probable, function = o, f
			}
		}
	}
	return probable, function
}

// hasTag reports whether a program of the file has a tag.
func (o *bpfObject) hasTag(tag bpf.Tag) bool {
	return slices.ContainsFunc(o.Functions, func(f bpfobj.Function) bool {
		return f.Program && slices.Contains(f.Tags, tag)
	})
}

func sameRecord(a, b *bpf.Line) bool {
	return a.Line == b.Line && a.Column == b.Column && a.File == b.File
}

// containsRecords reports whether the records of a loaded function are among those of an object file,
// in their order: the verifier removes some.
func containsRecords(all, loaded []bpf.Line) bool {
	for i := range all {
		if len(loaded) > 0 && sameRecord(&all[i], &loaded[0]) {
			loaded = loaded[1:]
		}
	}
	return len(loaded) == 0
}

// addOriginal adds the instructions before the verifier to the runs of a function.
func addOriginal(code *annotate.BPFCode, in *bpf.Instructions, o *bpfObject, f *bpfobj.Function) {
	all := disasm.BPF(f.Code, o.BigEndian, &disasm.BPFNames{Helper: disasm.BPFHelper,
		Symbol: func(index int) string { return f.Symbols[index] }})
	runs := make([][]disasm.BPFInst, len(f.Records)) // instructions by record
	for i, next := 0, 0; i < len(all); i++ {
		for next < len(f.Records) && int(f.Records[next].Insn) <= all[i].Index {
			next++
		}
		if next > 0 {
			runs[next-1] = append(runs[next-1], all[i])
		}
	}
	last := -1 // run of the loaded function
	for i, to := range alignRecords(f.Records, in.Runs, func(record, run int) bool {
		return sameTexts(runs[record], code, run)
	}) {
		if to >= 0 {
			last = to
			code.Runs[to].Original = runs[i]
		} else if last >= 0 {
			r := &f.Records[i]
			code.Runs[last].Removed = append(code.Runs[last].Removed, annotate.BPFRemoved{Original: runs[i],
				CodeLine: annotate.CodeLine{File: r.File, Line: r.Line, Column: r.Column, Source: r.Source}})
		}
	}
	code.Object = o.path
}

// sameTexts reports whether the first instructions of a run are those of a record.
func sameTexts(original []disasm.BPFInst, code *annotate.BPFCode, run int) bool {
	at, _ := slices.BinarySearchFunc(code.Instructions, code.Runs[run].Index,
		func(x disasm.BPFInst, index int) int { return x.Index - index })
	return len(original) > 0 && at < len(code.Instructions) && original[0].Text == code.Instructions[at].Text
}

// maxAlign bounds the product of the numbers of records.
const maxAlign = 1 << 22

// alignRecords returns for each record of an object file the run of the loaded function that it
// became, −1 for none. Among the possible assignments, it returns one with the most equal instructions.
func alignRecords(all, loaded []bpf.Line, same func(record, run int) bool) []int {
	n, m := len(all), len(loaded)
	out := slices.Repeat([]int{-1}, n)
	if n*m > maxAlign {
		for i, k := 0, 0; i < n && k < m; i++ {
			if sameRecord(&all[i], &loaded[k]) {
				out[i] = k
				k++
			}
		}
		return out
	}
	const record, instruction = 1 << 10, 1
	best := make([]int, (n+1)*(m+1)) // of the records from i and the runs from k on
	value := func(i, k int) int {
		if !sameRecord(&all[i], &loaded[k]) {
			return 0
		}
		if same(i, k) {
			return record + instruction
		}
		return record
	}
	for i := n - 1; i >= 0; i-- {
		for k := m - 1; k >= 0; k-- {
			at := i*(m+1) + k
			best[at] = max(best[at+1], best[at+m+1])
			if v := value(i, k); v > 0 {
				best[at] = max(best[at], best[at+m+2]+v)
			}
		}
	}
	for i, k := 0, 0; i < n && k < m; {
		at := i*(m+1) + k
		switch v := value(i, k); {
		case v > 0 && best[at] == best[at+m+2]+v:
			out[i] = k
			i, k = i+1, k+1
		case best[at] == best[at+m+1]:
			i++
		default:
			k++
		}
	}
	return out
}
