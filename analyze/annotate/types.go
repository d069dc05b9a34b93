package annotate

import (
	"fmt"
	"strconv"
	"strings"

	"symbolize/analyze/memory"
	"symbolize/ingest"
)

// TypeLayout is a structure or union with the samples of its members.
type TypeLayout struct {
	Name    string       `json:"name"` // "struct point"
	Object  string       `json:"object"`
	Size    int64        `json:"size"` // bytes
	Samples uint64       `json:"samples"`
	Weight  uint64       `json:"weight"`
	Share   float64      `json:"samples_percent"`  // of all samples of the event
	Memory  *memory.Sums `json:"memory,omitempty"` // what processors recorded of the accesses
	Members []TypeMember `json:"members"`
}

// TypeMember is a member, also one of a structure in the structure, or a hole. Samples of a union count for all
// its members that have the size of the access.
type TypeMember struct {
	Name    string       `json:"name,omitempty"` // with those around it: "b_stats.b_reads"; "" for a hole
	Type    string       `json:"type,omitempty"`
	Offset  int64        `json:"offset"` // bytes
	Size    int64        `json:"size"`   // bytes; of a bit field those that have bits of it
	Bits    int          `json:"bits,omitempty"`
	Samples uint64       `json:"samples"`
	Weight  uint64       `json:"weight"`
	Share   float64      `json:"samples_percent"`
	Memory  *memory.Sums `json:"memory,omitempty"`
}

// cacheLine is the size of cache lines in bytes.
const cacheLine = 64

// SetShares sets the shares of a total, of samples (0) or weights (1).
func (l *TypeLayout) SetShares(total uint64, of int) {
	share := func(samples, weight uint64) float64 {
		return 100 * float64([2]uint64{samples, weight}[of]) / float64(max(total, 1))
	}
	l.Share = share(l.Samples, l.Weight)
	for i := range l.Members {
		l.Members[i].Share = share(l.Members[i].Samples, l.Members[i].Weight)
	}
}

// title describes a type: its size, and its object.
func (l *TypeLayout) title() string {
	lines := "1 cache line"
	if n := (l.Size + cacheLine - 1) / cacheLine; n != 1 {
		lines = fmt.Sprintf("%d cache lines", n)
	}
	return fmt.Sprintf("%d bytes, %s, of %s", l.Size, lines, ingest.BaseName(l.Object))
}

// typeRow is a row of a layout: a member, a hole, or where a cache line begins.
type typeRow struct {
	Percent, Heat string // "" without samples
	Offset, Size  string
	Text          string
	Memory        []string // columns of the page, if it has them
}

// rows returns the members, and where cache lines begin.
func (l *TypeLayout) rows() (rows []typeRow) {
	line := int64(0)
	for k := range l.Members {
		m := &l.Members[k]
		if n := m.Offset / cacheLine; n > line {
			rows = append(rows, typeRow{Text: fmt.Sprintf("-- cache line %d --", n), Memory: make([]string, len(l.titles()))})
			line = n
		}
		r := m.row()
		if l.Memory != nil {
			r.Memory = m.Memory.Columns()
		}
		rows = append(rows, r)
	}
	return rows
}

// titles returns the titles of the columns that TypeMember.Memory has.
func (l *TypeLayout) titles() []string {
	if l.Memory == nil {
		return nil
	}
	return memory.Titles()
}

// row is the row of a member.
func (m *TypeMember) row() typeRow {
	r := typeRow{Offset: strconv.FormatInt(m.Offset, 10), Size: strconv.FormatInt(m.Size, 10), Text: m.Name + "  " + m.Type}
	if m.Samples > 0 {
		r.Percent, r.Heat = fmt.Sprintf("%.2f", m.Share), heat(m.Share)
	}
	if m.Bits > 0 {
		r.Text += fmt.Sprintf(" : %d", m.Bits)
	}
	if m.Name == "" {
		r.Text = "(hole)"
	}
	return r
}

// layouts writes the types: each member with its share, offset and size, and where cache lines begin.
func (t *annotateWriter) layouts(list []TypeLayout) {
	for i := range list {
		l := &list[i]
		fmt.Fprintf(t, "\n%s: %.2f%%, %s\n", l.Name, l.Share, l.title())
		row := func(percent, offset, size string, more []string, text string) {
			columns := ""
			if l.Memory != nil {
				columns = memory.Line(more) + " |"
			}
			fmt.Fprintf(t, " %8s | %6s | %5s |%s %s\n", percent, offset, size, columns, text)
		}
		t.WriteString("\n")
		row("Percent", "Offset", "Size", l.titles(), "Member")
		line := ""
		if l.Memory != nil {
			line = strings.Repeat("-", len(memory.Line(l.titles()))+1) + "+"
		}
		t.WriteString("----------+--------+-------+" + line + "----------------------------------------\n")
		for _, r := range l.rows() {
			row(r.Percent, r.Offset, r.Size, r.Memory, r.Text)
		}
	}
}
