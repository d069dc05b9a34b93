package bpfmap

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"symbolize/analyze/demangle"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/input"
)

// StackReport are the stacks of a stack map. Its JSON names are an interface.
type StackReport struct {
	MapName
	Stacks []StackRow `json:"stacks"`

	dumped   []input.DumpedStack // Stacks before they have names
	unplaced int
}

// StackRow is a stack with its frames, innermost first.
type StackRow struct {
	ID     int64      `json:"id"`            // as keys of count maps have it
	Key    string     `json:"key,omitempty"` // in place of ID: a key of more than 8 bytes
	Frames []StackRef `json:"frames"`        // none in an empty stack
}

// StackRef is a frame of a stack map.
type StackRef struct {
	Status  string        `json:"status"`             // the kernel's: valid or ip
	BuildID string        `json:"build_id,omitempty"` // of a valid frame
	Offset  string        `json:"offset,omitempty"`   // in the file with the build ID
	Address string        `json:"address,omitempty"`  // of an ip frame
	Object  string        `json:"object,omitempty"`
	Frames  []SymbolFrame `json:"frames,omitempty"` // innermost first, inlined ones too
	Reason  string        `json:"reason,omitempty"` // why it has no name
}

// HasStacks reports whether the dump is of a stack map. A dump without the type of its map is one if
// all its values have the form of stacks, and a note says so.
func (m *Dump) HasStacks(log Log) bool {
	switch {
	case m.Layout.Types != nil:
		return false
	case m.Header.Type != 0:
		return stackmap.IsStacks(&m.Header)
	case !stackmap.LooksLikeMap(m.input(), &m.Header):
		return false
	}
	log.Note(m.Title() + ": the dump has no type of its map; all values have the form of stacks")
	return true
}

func (m *Dump) input() *stackmap.Input {
	return &stackmap.Input{Name: m.Name, R: m.r, Size: m.size}
}

// Stacks reads the stacks of a stack map, and returns the profile that has the locations of their
// frames. Once it is resolved, Name names them.
func (m *Dump) Stacks(ctx context.Context, opts input.Options, log Log) (
	*StackReport, *ingest.Profile, error) {
	p, list, err := input.Stacks(ctx, m.input(), opts)
	if p == nil {
		return nil, nil, err
	}
	if err != nil {
		log.Damage(err.Error()+"; all before it is used", "dump it again")
	}
	return &StackReport{MapName: m.mapName(), Stacks: []StackRow{}, dumped: list}, p, nil
}

// Name fills in Stacks from the resolved profile.
func (r *StackReport) Name(p *ingest.Profile, d *demangle.Demangler) {
	for _, s := range r.dumped {
		row := StackRow{ID: s.ID, Key: s.Key, Frames: []StackRef{}}
		for i := range s.Frames {
			f := &s.Frames[i]
			x := StackRef{Status: "ip"}
			if f.Status == stackmap.Valid {
				x.Status, x.BuildID, x.Offset = "valid", f.ID.Hex(), fmt.Sprintf("%#x", f.Offset)
			} else {
				x.Address = fmt.Sprintf("%#x", f.Offset)
			}
			if f.Located {
				x.Object, x.Frames, x.Reason = namesAt(p, f.Location, d)
				if kernelUnknown(p, f.Location) {
					r.unplaced++
				}
			}
			row.Frames = append(row.Frames, x)
		}
		r.Stacks = append(r.Stacks, row)
	}
}

// Unplaced returns the number of frames with kernel addresses that are in no known kernel.
func (r *StackReport) Unplaced() int { return r.unplaced }

// NumFrames returns the number of frames.
func (r *StackReport) NumFrames() (n int) {
	for i := range r.Stacks {
		n += len(r.Stacks[i].Frames)
	}
	return n
}

// WriteText prints a row for each frame, innermost first: the number of the stack, the kernel's
// status, build ID and offset or the address, the function with its object, and the innermost line.
func (r *StackReport) WriteText(w io.Writer) error {
	t := table.New(false, false, false, true).Names(4, 5)
	t.Row("STACK", "STATUS", "BUILD ID", "OFFSET", "FUNCTION", "LINE")
	for i := range r.Stacks {
		s := &r.Stacks[i]
		id := cmp.Or(s.Key, strconv.FormatInt(s.ID, 10))
		if len(s.Frames) == 0 {
			t.Row(id, "empty", "-", "-", "-", "-")
		}
		for k := range s.Frames {
			x := &s.Frames[k]
			t.Row(id, x.Status, cmp.Or(x.BuildID, "-"), cmp.Or(x.Offset, x.Address), x.function(),
				lineText(x.Frames))
		}
	}
	return t.Print(w)
}

// function names the physical function of a frame, with the file, and the calls inlined there.
func (x *StackRef) function() string {
	switch {
	case len(x.Frames) > 0 && x.BuildID != "":
		return fmt.Sprintf("%s (%s)", x.Frames[len(x.Frames)-1].Function, x.Object) +
			inlinedText(x.Frames)
	case len(x.Frames) > 0:
		return x.Frames[len(x.Frames)-1].Function + inlinedText(x.Frames)
	case x.Object == "":
		return "-"
	}
	return fmt.Sprintf("[%s]: %s", x.Object, x.Reason)
}
