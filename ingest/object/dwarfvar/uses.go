package dwarfvar

import (
	"cmp"
	"slices"

	"symbolize/ingest/object/dwarf"
)

// uses are the types that code needs, by the entries that refer to them: Options.Values reads functions only after
// all types are known.
type uses struct {
	types   []dwarf.Pos // of variables and parameters
	results []dwarf.Pos // functions that are called
	foreign []dwarf.Pos // functions of other units that are inlined
}

// note adds what an entry in a function refers to, or the function's own.
func (u *uses) note(t *dwarf.Tree, e *dwarf.Entry) {
	switch e.Tag {
	case tagFormalParameter, tagVariable:
		u.types = appendRef(u.types, t, e, atType)
	case tagCallSite:
		u.results = appendRef(u.results, t, e, atCallOrigin)
	case tagGNUCallSite:
		u.results = appendRef(u.results, t, e, atAbstractOrigin)
	case tagSubprogram, tagInlinedSubroutine:
		if p, ok := t.Ref(e, atAbstractOrigin); ok && p.Root != e.Root {
			u.foreign = append(u.foreign, p)
		}
	}
}

func appendRef(list []dwarf.Pos, t *dwarf.Tree, e *dwarf.Entry, attr uint16) []dwarf.Pos {
	if p, ok := t.Ref(e, attr); ok {
		list = append(list, p)
	}
	return list
}

// uses adds the types that the code of a unit needs.
func (c *converter) uses(u *uses) {
	seen := make(map[dwarf.Pos]bool)
	for len(u.foreign) > 0 {
		p := u.foreign[0]
		u.foreign = u.foreign[1:]
		if !seen[p] {
			seen[p] = true
			u.instance(c.r.tree, p)
		}
	}
	for _, p := range u.types {
		c.at(p)
	}
	slices.SortFunc(u.results, func(a, b dwarf.Pos) int {
		return cmp.Or(cmp.Compare(a.Root.Offset, b.Root.Offset), cmp.Compare(a.Off, b.Off))
	})
	for _, p := range slices.Compact(u.results) {
		c.result(p)
	}
	*u = uses{}
}

// instance notes what the abstract instance of a function of another unit refers to.
func (u *uses) instance(t *dwarf.Tree, p dwarf.Pos) {
	e := t.Entry()
	defer t.Release(e)
	if !t.Read(p, e) {
		return
	}
	u.note(t, e)
	t.Kids(e, func(k *dwarf.Entry, _ int) dwarf.Step {
		u.note(t, k)
		switch k.Tag {
		case tagLexicalBlock, tagInlinedSubroutine, tagTryBlock, tagCatchBlock, tagWithStmt, tagGNUFormalPack:
			return dwarf.Into
		}
		return dwarf.Over
	}, nil)
}
