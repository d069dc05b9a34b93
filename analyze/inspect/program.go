package inspect

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	"symbolize/analyze/table"
	"symbolize/ingest/input"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/bpfprog"
)

// Program describes a BPF program of a capture. Its JSON names are an interface.
type Program struct {
	ID       uint32 `json:"id"`             // 0 if no record has it
	Type     string `json:"type,omitempty"` // "xdp", as bpftool names it
	Name     string `json:"name"`           // as the kernel cut it
	Tag      string `json:"tag"`
	LoadTime uint64 `json:"load_time_ns"` // since boot; 0 if not known
	// Loaded and Unloaded are the times of its records, of the recording's clock, and Lived is the time
	// between them; 0 if not recorded.
	Loaded    uint64     `json:"loaded_ns,omitempty"`
	Unloaded  uint64     `json:"unloaded_ns,omitempty"`
	Lived     uint64     `json:"lived_ns,omitempty"`
	UID       uint32     `json:"uid"`
	BTFID     uint32     `json:"btf_id,omitempty"`
	JITedSize uint32     `json:"jited_size"`
	Size      uint32     `json:"xlated_size"`
	RunTime   uint64     `json:"run_time_ns,omitempty"`
	RunCount  uint64     `json:"run_count,omitempty"`
	Missing   string     `json:"missing,omitempty"` // why there is no image
	Functions []Function `json:"functions"`
}

// Function describes one function of a program.
type Function struct {
	Name    string `json:"name"`
	Symbol  string `json:"symbol"`
	Tag     string `json:"tag"` // its own
	BuildID string `json:"build_id,omitempty"`
	Address string `json:"address,omitempty"`
	Length  uint32 `json:"length"`
	Image   string `json:"image_sha256,omitempty"`
	Size    int    `json:"image_size"`
	Lines   int    `json:"lines"`
	File    string `json:"file,omitempty"` // of the first line
	Line    uint32 `json:"line,omitempty"`
	// First is the number of its first BPF instruction in the program, and Instructions how many it
	// has, in units of 8 bytes; NoInstructions is the reason why they are not known.
	First          uint32 `json:"bpf_first,omitempty"`
	Instructions   int    `json:"bpf_instructions,omitempty"`
	NoInstructions string `json:"bpf_missing,omitempty"`
}

// programsOf lists the BPF programs of a capture, by ID. Damage among them is in the warnings of
// the capture's profile.
func programsOf(path string, c *input.Capture) []Program {
	programs, _ := c.Programs()
	machine := bpfprog.CaptureInfoOf(path, c).Machine
	list := make([]Program, len(programs))
	for i := range programs {
		list[i] = newProgram(&programs[i], machine)
	}
	return list
}

func newProgram(p *bpf.Program, machine string) Program {
	info := Program{ID: p.ID, Name: p.Name, Tag: p.Tag.String(), LoadTime: p.LoadTime,
		UID: p.UID, BTFID: p.BTFID, JITedSize: p.JITedLen, Size: p.XlatedLen,
		Loaded: p.Loaded, Unloaded: p.Unloaded, RunTime: p.RunTime, RunCount: p.RunCount, Missing: p.Missing, Functions: []Function{}}
	if p.Loaded != 0 && p.Unloaded > p.Loaded {
		info.Lived = p.Unloaded - p.Loaded
	}
	if p.Raw != nil {
		info.Type = bpfprog.TypeName(p.Type)
	}
	for i := range p.Funcs {
		f := &p.Funcs[i]
		fn := Function{Name: f.Name, Symbol: p.Symbol(i), Tag: f.Tag.String(),
			Length: f.Length, Size: len(f.Image), Lines: len(f.Lines)}
		if f.Length > 0 {
			fn.BuildID = p.Identity(i, machine).String()
		}
		if f.Start != 0 {
			fn.Address = fmt.Sprintf("%#x", uint64(f.Start))
		}
		if p.Tag == (bpf.Tag{}) && p.Raw == nil {
			fn.Symbol = f.Name // not even its tag is known
		}
		if len(f.Image) > 0 {
			fn.Image = store.NewBlobID(f.Image).String()
		}
		if len(f.Lines) > 0 {
			fn.File, fn.Line = f.Lines[0].File, f.Lines[0].Line
		}
		if in, err := p.Instructions(i); err != nil {
			fn.NoInstructions = texts.Printable(err.Error())
		} else {
			fn.First, fn.Instructions = in.First, len(in.Code)/bpf.InsnSize
		}
		info.Functions = append(info.Functions, fn)
	}
	return info
}

// shortHash is the number of digits of a hash in tables; the JSON has all.
const shortHash = 12

// writePrograms writes a row for each function.
func writePrograms(w io.Writer, programs []Program) error {
	if len(programs) == 0 {
		return nil
	}
	t := table.New(true, false, true, true, false, false, true, false, true).Names(9).Without(120, 1, 5, 7, 8)
	t.Row("PROGRAM", "TYPE", "LOADED", "LIVED", "TAG", "OWN TAG", "SIZE", "IMAGE", "LINES", "FUNCTION")
	for i := range programs {
		p := &programs[i]
		for k := range p.Functions {
			f := &p.Functions[k]
			image := cmp.Or(f.Image, "-")
			name := cmp.Or(f.Name, f.Symbol, "?")
			if p.Missing != "" {
				name += ": " + p.Missing
			}
			t.Row(p.number(), cmp.Or(p.Type, "-"), p.loaded(), p.lived(), p.Tag, f.Tag,
				strconv.Itoa(int(f.Length)), image[:min(len(image), shortHash)],
				strconv.Itoa(f.Lines), name)
		}
	}
	return t.Print(w)
}

// number returns the program's ID.
func (p *Program) number() string {
	if p.ID == 0 {
		return "-"
	}
	return strconv.Itoa(int(p.ID))
}

// loaded returns when a program was loaded, in seconds since boot: by the kernel, else by its record.
func (p *Program) loaded() string {
	at := cmp.Or(p.LoadTime, p.Loaded)
	if at == 0 {
		return "-"
	}
	return fmt.Sprintf("%.6fs", time.Duration(at).Seconds())
}

// lived returns how long a program was loaded, if the recording has both records; else when it was
// unloaded; "-" if it was not.
func (p *Program) lived() string {
	switch {
	case p.Lived != 0:
		return time.Duration(p.Lived).String()
	case p.Unloaded != 0:
		return "unloaded " + fmt.Sprintf("%.6fs", time.Duration(p.Unloaded).Seconds())
	}
	return "-"
}
