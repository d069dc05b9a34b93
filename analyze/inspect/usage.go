package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"symbolize/analyze/table"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/object/bpf"
	"symbolize/store/bpfprog"
)

// BPFUsage describes how the BPF programs of a host were used over a recording. Its JSON names
// are an interface.
type BPFUsage struct {
	Counted  bool         `json:"runs_counted"` // the kernel counted runs
	Duration uint64       `json:"duration_ns"`  // over which; 0 if it did not
	Lost     uint64       `json:"programs_left_out,omitempty"`
	Programs []ProgramUse `json:"programs"` // the costliest first, then by ID
}

// ProgramUse describes how one BPF program was used.
type ProgramUse struct {
	ID       uint32    `json:"id"`
	Type     string    `json:"type"`
	Name     string    `json:"name"` // in full, if the capture has it
	Tag      string    `json:"tag"`
	UID      uint32    `json:"uid"`
	Runs     uint64    `json:"run_count"`
	RunTime  uint64    `json:"run_time_ns"`
	PerRun   float64   `json:"ns_per_run"`
	Share    float64   `json:"cpu_share"` // of one CPU, over the recording
	Missed   uint64    `json:"recursion_misses,omitempty"`
	Unloaded bool      `json:"unloaded,omitempty"` // while it was recorded
	Maps     []UsedMap `json:"maps,omitempty"`
}

// UsedMap is a map of a program.
type UsedMap struct {
	ID   uint32 `json:"id"`
	Type string `json:"type"`
	Name string `json:"name"`
}

// NewBPFUsage reads how programs were used from a bundle; nil if it does not have it. programs
// are the programs of the capture, for their full names.
func NewBPFUsage(b *bundle.Bundle, programs []bpf.Program) (*BPFUsage, error) {
	if b == nil {
		return nil, nil
	}
	l, err := b.BPFStats()
	if l == nil || err != nil {
		return nil, err
	}
	names := make(map[uint32]string)
	for i := range programs {
		if p := &programs[i]; len(p.Funcs) > 0 {
			names[p.ID] = p.Funcs[0].Name
		}
	}
	u := &BPFUsage{Counted: l.Counted(), Duration: l.End - l.Begin, Lost: l.Lost,
		Programs: make([]ProgramUse, len(l.Programs))}
	for i := range l.Programs {
		u.Programs[i] = u.program(&l.Programs[i], names[l.Programs[i].ID])
	}
	slices.SortFunc(u.Programs, func(a, b ProgramUse) int {
		return cmp.Or(cmp.Compare(b.RunTime, a.RunTime), cmp.Compare(b.Runs, a.Runs),
			cmp.Compare(a.ID, b.ID))
	})
	return u, nil
}

func (u *BPFUsage) program(p *bpf.ProgramStats, name string) ProgramUse {
	x := ProgramUse{ID: p.ID, Type: bpfprog.TypeName(p.Type), Name: cmp.Or(name, p.Name),
		Tag: p.Tag, UID: p.UID, Runs: p.Runs, RunTime: p.RunTime, Missed: p.Missed,
		Unloaded: p.Gone}
	if x.Runs > 0 {
		x.PerRun = float64(x.RunTime) / float64(x.Runs)
	}
	if u.Duration > 0 {
		x.Share = float64(x.RunTime) / float64(u.Duration)
	}
	for _, m := range p.Maps {
		x.Maps = append(x.Maps, UsedMap{ID: m.ID, Type: mapdump.TypeName(m.Type), Name: m.Name})
	}
	return x
}

// NotCounted is the remark where the kernel did not count runs.
const NotCounted = "the kernel did not count their runs: record with `symbolize capture " +
	"--bpf-stats`"

// rows adds a line about the runs.
func (u *BPFUsage) rows(t *table.Table) {
	if u == nil || len(u.Programs) == 0 {
		return
	}
	text := NotCounted
	if u.Counted {
		var runs, time uint64
		for i := range u.Programs {
			runs, time = runs+u.Programs[i].Runs, time+u.Programs[i].RunTime
		}
		text = fmt.Sprintf("%s runs, %s, %s of one CPU", table.Thousands(runs),
			table.Quantity(time, "nanoseconds"), table.Percent(time, u.Duration))
	}
	if u.Lost > 0 {
		text += fmt.Sprintf("; %d programs were left out", u.Lost)
	}
	t.Row("BPF", text)
}

// write writes a row for each program.
func (u *BPFUsage) write(w io.Writer) error {
	if u == nil || len(u.Programs) == 0 {
		return nil
	}
	t := table.New(true, true, true, true, true).Names(7, 6)
	head, skip := []string{"TIME", "RUNS", "NS/RUN", "CPU", "PROGRAM", "TYPE", "MAPS", "NAME"}, 0
	if !u.Counted {
		t, skip = table.New(true).Names(3, 2), 4
	}
	t.Row(head[skip:]...)
	for i := range u.Programs {
		p := &u.Programs[i]
		t.Row([]string{table.Quantity(p.RunTime, "nanoseconds"), table.Thousands(p.Runs),
			strconv.FormatFloat(p.PerRun, 'f', 0, 64), table.Percent(p.RunTime, u.Duration),
			strconv.Itoa(int(p.ID)), p.Type, cmp.Or(p.UsesMaps(), "-"), p.Label()}[skip:]...)
	}
	return t.Print(w)
}

// someOf is how many things a cell of a table lists; the JSON has all.
const someOf = 3

// UsesMaps returns the names of the program's maps, as text: the first ones, and how many more.
func (p *ProgramUse) UsesMaps() string {
	var list []string
	for _, m := range p.Maps[:min(len(p.Maps), someOf)] {
		list = append(list, cmp.Or(m.Name, fmt.Sprintf("%s %d", m.Type, m.ID)))
	}
	if more := len(p.Maps) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return table.Join(", ", list...)
}

// Label returns the program's name, with a remark if the program was unloaded.
func (p *ProgramUse) Label() string {
	name := cmp.Or(p.Name, "-")
	if p.Unloaded {
		name += " (unloaded meanwhile)"
	}
	return name
}
