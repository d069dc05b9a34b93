package sideband

import (
	"cmp"
	"slices"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/bundle"
)

// noteMissing enters the reasons of a bundle's recorder for programs without code. Those of
// the first bundle have precedence.
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

// addMissing adds the programs of a bundle's own list that no record names: they were loaded
// before the recording and unloaded before they could be read. It sets the reasons of the
// others.
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

// maxProgramName is the longest name of a program in the kernel: BPF_OBJ_NAME_LEN − 1.
const maxProgramName = 15
