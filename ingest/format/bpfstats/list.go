package bpfstats

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// MaxBytes is the largest list that is read.
const MaxBytes = 64 << 20

// List is how the BPF programs of a host were used over a recording.
type List struct {
	Begin    uint64    `json:"begin,omitempty"` // ns of CLOCK_BOOTTIME
	End      uint64    `json:"end,omitempty"`
	Lost     uint64    `json:"lost,omitempty"` // programs beyond the recorder's bound
	Programs []Program `json:"programs"`
}

// Counted reports whether the kernel counted runs.
func (l *List) Counted() bool { return l.End > l.Begin }

// Program is how one program was used.
type Program struct {
	ID       uint32       `json:"id"`
	Tag      string       `json:"tag,omitempty"`
	Name     string       `json:"name,omitempty"`
	Type     uint32       `json:"type"` // enum bpf_prog_type
	UID      uint32       `json:"uid,omitempty"`
	Loaded   uint64       `json:"loaded,omitempty"`
	First    uint64       `json:"first,omitempty"`
	Last     uint64       `json:"last,omitempty"`
	Gone     bool         `json:"gone,omitempty"`
	Runs     uint64       `json:"runs,omitempty"`
	RunTime  uint64       `json:"run_ns,omitempty"`
	Missed   uint64       `json:"missed,omitempty"`
	Maps     []Map        `json:"maps,omitempty"`
	Attached []Attachment `json:"attached,omitempty"`
	Holders  []Holder     `json:"holders,omitempty"`
	Pins     []string     `json:"pins,omitempty"`
	More     uint64       `json:"more,omitempty"` // of the last three, beyond the recorder's bound
}

// Map is a map that a program uses.
type Map struct {
	ID   uint32 `json:"id"`
	Name string `json:"name,omitempty"`
	Type uint32 `json:"type"` // enum bpf_map_type
}

// Attachment is a place at which the kernel runs a program.
type Attachment struct {
	How   string `json:"how"`
	To    string `json:"to,omitempty"`
	Link  uint32 `json:"link,omitempty"`
	Times uint32 `json:"times,omitempty"` // links like this one, if there are several
}

// Holder is a process that keeps a program loaded or attached.
type Holder struct {
	PID  int32  `json:"pid"`
	Comm string `json:"comm,omitempty"`
	By   string `json:"by"` // ByProgram, ByLink or ByPerfEvent
}

// The values of Holder.By.
const (
	ByProgram   = "program"
	ByLink      = "link"
	ByPerfEvent = "perf_event"
)

// Encode returns the list as bytes: equal lists give equal ones. It sorts the programs.
func Encode(l *List) ([]byte, error) {
	slices.SortFunc(l.Programs, func(a, b Program) int { return cmp.Compare(a.ID, b.ID) })
	if l.Programs == nil {
		l.Programs = []Program{}
	}
	b, err := json.Marshal(l)
	return append(b, '\n'), err
}

// Decode reads a list. name is for messages.
func Decode(name string, data []byte) (*List, error) {
	l := new(List)
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("%s: %w", name, place(err))
	}
	if l.End < l.Begin {
		return nil, fmt.Errorf("%s: it ends at %d, before it begins, at %d", name, l.End, l.Begin)
	}
	for i := range l.Programs {
		if i > 0 && l.Programs[i-1].ID >= l.Programs[i].ID {
			return nil, fmt.Errorf("%s: program %d follows program %d", name, l.Programs[i].ID,
				l.Programs[i-1].ID)
		}
	}
	return l, nil
}

// place adds the offset to errors that have one.
func place(err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("offset %d: %w", syntax.Offset, err)
	case errors.As(err, &typ):
		return fmt.Errorf("offset %d: %w", typ.Offset, err)
	}
	return err
}
