package sideband

import (
	"cmp"
	"slices"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/bundle"
)

// noteMissing takes in why a bundle's recorder has no code of some programs. The bundle
// that is given first knows best.
func (sb *State) noteMissing(list []bundle.MissingProgram) {
	for i := range list {
		m := &list[i]
		if m.ID == 0 || m.Reason == "" || sb.Programs.missing[m.ID] != "" {
			continue
		}
		if sb.Programs.missing == nil {
			sb.Programs.missing = make(map[uint32]string)
		}
		sb.Programs.missing[m.ID] = m.Reason
	}
}

// addMissing adds the programs of a bundle's own list that no record names, because they
// were there before and went before they could be read: all that is known of them is
// that list's row. It gives the others its reasons.
func (sb *State) addMissing(list []bundle.MissingProgram) {
	known := make(map[uint32]bool, len(sb.Programs.List))
	for i := range sb.Programs.List {
		p := &sb.Programs.List[i]
		known[p.ID] = true
		if p.Missing != "" && sb.Programs.missing[p.ID] != "" {
			p.Missing = sb.Programs.missing[p.ID]
		}
	}
	for i := range list {
		m := &list[i]
		if known[m.ID] || sb.Programs.missing[m.ID] == "" {
			continue
		}
		known[m.ID] = true
		f := bpf.Func{Name: m.Symbol}
		if tag, name, ok := bpf.SplitSymbol(m.Symbol); ok {
			f.Tag, f.Name = tag, name
		}
		sb.Programs.List = append(sb.Programs.List, bpf.Program{ID: m.ID, Missing: m.Reason, Tag: f.Tag,
			Name: f.Name[:min(len(f.Name), maxProgramName)], BigEndian: sb.Host.BigEndian,
			Funcs: []bpf.Func{f}})
	}
	slices.SortStableFunc(sb.Programs.List,
		func(a, b bpf.Program) int { return cmp.Compare(a.ID, b.ID) })
}

// maxProgramName is how much the kernel keeps of a program's name: BPF_OBJ_NAME_LEN − 1.
const maxProgramName = 15
