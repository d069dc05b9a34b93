package inspect

import (
	"fmt"
	"time"

	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
	"symbolize/store"
	"symbolize/store/bpfprog"
)

// StoredVariant is a load of a BPF function. Its JSON names are an interface.
type StoredVariant struct {
	Program  uint32 `json:"program_id"`
	BootID   string `json:"boot_id,omitempty"`
	LoadTime uint64 `json:"load_time_ns"` // since that boot
	Type     string `json:"type"`
	Tag      string `json:"tag"`
	OwnTag   string `json:"own_tag"`
	Function uint32 `json:"function"` // which one of the program; 0 is the main one
	Name     string `json:"name"`
	Image    string `json:"image_sha256,omitempty"` // "" if it was not captured
	Size     uint32 `json:"image_size"`
	Entry    string `json:"entry_sha256"`
	BTF      string `json:"btf_sha256,omitempty"`
}

// addVariants adds the fields that only JITed functions have.
func (o *Stored) addVariants(m *store.Manifest) {
	for i := range m.Variants {
		if m.Kind != ingest.JIT {
			o.addPiece(&m.Variants[i])
			continue
		}
		v := &m.Variants[i]
		s := StoredVariant{Program: v.Program, BootID: v.BootID, LoadTime: v.Load,
			Type: bpfprog.TypeName(v.Type), Tag: bpf.Tag(v.Tag).String(),
			OwnTag: bpf.Tag(v.FuncTag).String(), Function: v.Func, Name: v.Name, Size: v.Size,
			Entry: v.Entry.String()}
		if !v.Image.IsZero() {
			s.Image = v.Image.String()
		}
		if !v.BTF.IsZero() {
			s.BTF = v.BTF.String()
		}
		o.Variants = append(o.Variants, s)
	}
	if len(m.Variants) > 0 && m.Kind == ingest.JIT {
		o.Symbol = bpfprog.SymbolOf(&m.Variants[0])
	}
	o.More = m.MoreVariants
	for _, id := range m.Probable {
		o.Probable = append(o.Probable, id.String())
	}
	switch {
	case m.IsAlias():
		o.Quality = "alias"
	case !m.HasNames() && len(m.Probable) > 0:
		o.Quality = "probable"
	}
}

// addPiece adds a piece of a perf map or jitdump file: the process, and the part that was kept.
func (o *Stored) addPiece(v *store.Variant) {
	n := len(o.Processes) - 1
	p := StoredProcess{PID: int32(v.Program), Host: v.BootID, Written: int64(v.Load), Size: int64(v.Size)}
	if n < 0 || o.Processes[n].PID != p.PID || o.Processes[n].Host != p.Host ||
		o.Processes[n].Written != p.Written {
		o.Processes = append(o.Processes, p)
		return
	}
	o.Processes[n].Size += p.Size
}

// StoredProcess is a process with a stored list of compiled code. Its JSON names are an
// interface.
type StoredProcess struct {
	PID     int32  `json:"pid"`
	Host    string `json:"host,omitempty"`
	Written int64  `json:"written_ns"` // the file, since 1970
	Size    int64  `json:"size"`       // bytes that are kept
}

// probable names the objects that one with name, tag and length only may be.
func (o *Stored) probable() string {
	switch len(o.Probable) {
	case 0:
		return ""
	case 1:
		if o.Quality == "alias" {
			return "of " + o.Probable[0]
		}
		return "probably " + o.Probable[0]
	}
	return fmt.Sprintf("one of %d objects", len(o.Probable))
}

// variantRows adds the rows that only JITed functions have.
func (o *Stored) variantRows(t *table.Table) {
	t.Field("symbol", o.Symbol)
	for _, p := range o.Processes {
		host := ""
		if p.Host != "" {
			host = " of host " + p.Host
		}
		t.Row("process", fmt.Sprintf("%d%s, %d bytes written %s", p.PID, host, p.Size,
			time.Unix(0, p.Written).UTC().Format(time.RFC3339)))
	}
	for _, v := range o.Variants {
		image := "not captured"
		if v.Image != "" {
			image = fmt.Sprintf("%s, %d bytes", v.Image[:shortHash], v.Size)
		}
		boot := ""
		if v.BootID != "" {
			boot = " of boot " + v.BootID
		}
		t.Row("image", fmt.Sprintf("%s, %s program %d%s, loaded %.6fs after boot, tag %s, own %s",
			image, v.Type, v.Program, boot, time.Duration(v.LoadTime).Seconds(), v.Tag, v.OwnTag))
	}
	if o.More {
		t.Row("image", "more were captured than are kept")
	}
	for _, id := range o.Probable {
		t.Row("probable", id+" is what captures may mean by this")
	}
}
