package bpf

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// The entry bpf/programs.json of a bundle records how BPF programs were used: how often and how
// long each ran, and which maps it has. It is one JSON object, of at most 64 MiB:
//
//	begin, end  the time over which runs were counted, 0 both if the kernel counted none
//	lost        programs that were left out, beyond the recorder's bound
//	programs    the programs that were there at some time of the recording, sorted by id:
//
//	id          the kernel's number
//	tag         16 hexadecimal digits
//	name        as the kernel cut it, at most 15 bytes
//	type        enum bpf_prog_type
//	uid         user who loaded it
//	loaded      load_time of bpf_prog_info
//	first       begin, or the first reading of a program that was loaded after it
//	last        the last reading, from which its numbers are
//	gone        true: it was unloaded after last
//	runs        runs from begin to last; of a program loaded after begin: all up to last
//	run_ns      time spent in them, likewise
//	missed      runs that recursion prevented, likewise
//	maps        [{id, name, type}], type being enum bpf_map_type; in the program's order
//
//	maps        maps with BTF that programs use, also those of programs that lived too shortly for the
//	            list, sorted by id: [{id, name, type, btf, value, value_size, entries}]; value is the
//	            number of the values' type in the BTF with the number btf, value_size is in bytes
//
// Times are ns of CLOCK_BOOTTIME, the clock of load_time. Members without a value are left out.
// Readers pass over members that they do not know.

// MaxStats is the largest list that is read.
const MaxStats = 64 << 20

// Stats is how the BPF programs of a host were used over a recording.
type Stats struct {
	Begin    uint64         `json:"begin,omitempty"` // ns of CLOCK_BOOTTIME
	End      uint64         `json:"end,omitempty"`
	Lost     uint64         `json:"lost,omitempty"` // programs beyond the recorder's bound
	Programs []ProgramStats `json:"programs"`
	Maps     []MapStats     `json:"maps,omitempty"` // with their types
}

// Counted reports whether the kernel counted runs.
func (l *Stats) Counted() bool { return l.End > l.Begin }

// ProgramStats is how one program was used.
type ProgramStats struct {
	ID      uint32     `json:"id"`
	Tag     string     `json:"tag,omitempty"`
	Name    string     `json:"name,omitempty"`
	Type    uint32     `json:"type"` // enum bpf_prog_type
	UID     uint32     `json:"uid,omitempty"`
	Loaded  uint64     `json:"loaded,omitempty"`
	First   uint64     `json:"first,omitempty"`
	Last    uint64     `json:"last,omitempty"`
	Gone    bool       `json:"gone,omitempty"`
	Runs    uint64     `json:"runs,omitempty"`
	RunTime uint64     `json:"run_ns,omitempty"`
	Missed  uint64     `json:"missed,omitempty"`
	Maps    []MapStats `json:"maps,omitempty"`
}

// MapStats is a map that a program uses.
type MapStats struct {
	ID   uint32 `json:"id"`
	Name string `json:"name,omitempty"`
	Type uint32 `json:"type"` // enum bpf_map_type
	// Only in Stats.Maps: what the values are. Value is a type of the BTF with the number BTF.
	BTF       uint32 `json:"btf,omitempty"`
	Value     uint32 `json:"value,omitempty"`
	ValueSize uint32 `json:"value_size,omitempty"` // bytes
	Entries   uint32 `json:"entries,omitempty"`    // at most, of an array all
}

// EncodeStats returns the list as bytes: equal lists give equal ones. It sorts the programs and maps.
func EncodeStats(l *Stats) ([]byte, error) {
	slices.SortFunc(l.Programs, func(a, b ProgramStats) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(l.Maps, func(a, b MapStats) int { return cmp.Compare(a.ID, b.ID) })
	if l.Programs == nil {
		l.Programs = []ProgramStats{}
	}
	b, err := json.Marshal(l)
	return append(b, '\n'), err
}

// DecodeStats reads a list. name is for messages.
func DecodeStats(name string, data []byte) (*Stats, error) {
	l := new(Stats)
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("%s: %w", name, reasonOf(err))
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
	for i := 1; i < len(l.Maps); i++ {
		if l.Maps[i-1].ID >= l.Maps[i].ID {
			return nil, fmt.Errorf("%s: map %d follows map %d", name, l.Maps[i].ID, l.Maps[i-1].ID)
		}
	}
	return l, nil
}

// reasonOf adds the offset to errors that have one.
func reasonOf(err error) error {
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
