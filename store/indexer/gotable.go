package indexer

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/gopclntab"
	"symbolize/store"
	"symbolize/store/symtab"
)

// pclntab adds the data of a Go program without debug information for its stack traces: functions,
// inlined calls and lines.
func (s *sources) pclntab(f *elf.File) {
	table, err := gopclntab.Find(f)
	if err != nil {
		s.fail(&incompleteError{err.Error()})
	}
	if table == nil {
		return
	}
	s.add(store.Pclntab, func(b *symtab.Builder) error {
		c := goConverter{b: b, table: table, files: make(map[uint32]symtab.FileRef)}
		want := func(r addr.Range) bool { return b.WantsAny([]addr.Range{r}) }
		lost, err := table.FunctionsIn(want, func(f *gopclntab.Function) bool {
			c.function(f)
			return true
		})
		s.count(b.Losses())
		return lostEntries(lost, err)
	})
}

// goConverter gives functions of a Go table to a Builder.
type goConverter struct {
	b     *symtab.Builder
	table *gopclntab.Table
	files map[uint32]symtab.FileRef
	fn    symtab.DebugFunc
}

func (c *goConverter) file(n uint32) symtab.FileRef {
	ref, ok := c.files[n]
	if !ok {
		ref = c.b.File(c.table.File(n))
		c.files[n] = ref
	}
	return ref
}

func (c *goConverter) function(f *gopclntab.Function) {
	c.fn.Sub = c.b.Sub(symtab.Subprogram{Name: f.Name, File: c.file(f.File), Line: f.StartLine})
	c.fn.Ranges = append(c.fn.Ranges[:0], f.Range)
	c.fn.Inlines = c.fn.Inlines[:0]
	for i := range f.Inlines {
		in := &f.Inlines[i]
		c.fn.Inlines = append(c.fn.Inlines, symtab.Inline{
			Sub: c.b.Sub(symtab.Subprogram{
				Name: in.Name, File: c.file(in.File), Line: in.StartLine,
			}),
			Parent: in.Parent, CallFile: c.file(in.CallFile), CallLine: in.CallLine,
			Ranges: in.Ranges,
		})
	}
	c.fn.Lines = c.fn.Lines[:0]
	for _, l := range f.Lines {
		c.fn.Lines = append(c.fn.Lines,
			symtab.Line{Addr: l.Addr, File: c.file(l.File), Line: l.Line})
	}
	c.b.AddFunction(&c.fn)
}
