package bundle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest/addr"
)

// Module is an entry of kernel/modules.json: a kernel module that was loaded at some time of the
// recording.
type Module struct {
	Name     string     `json:"name"`
	BuildID  buildid.ID `json:"-"` // zero if it has none
	Addr     addr.PC    `json:"-"` // of its code; 0 if hidden
	Size     uint64     `json:"size"`
	Loaded   uint64     `json:"loaded,omitempty"`   // ns of perf's clock; 0 = before the recording
	Unloaded uint64     `json:"unloaded,omitempty"` // the same; 0 = it stayed
}

type bareModule Module

type moduleJSON struct {
	*bareModule
	BuildID string `json:"build_id,omitempty"`
	Addr    string `json:"addr"`
}

// MarshalJSON returns the module as JSON.
func (m *Module) MarshalJSON() ([]byte, error) {
	v := moduleJSON{bareModule: (*bareModule)(m), Addr: hexAddr(m.Addr)}
	if !m.BuildID.IsZero() {
		v.BuildID = m.BuildID.Hex()
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads a module from JSON.
func (m *Module) UnmarshalJSON(data []byte) error {
	v := moduleJSON{bareModule: (*bareModule)(m)}
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	if v.BuildID != "" {
		id, err := buildid.Parse(v.BuildID)
		if err != nil {
			return fmt.Errorf("module %q: %w", m.Name, err)
		}
		m.BuildID = id
	}
	var err error
	m.Addr, err = parseAddr(v.Addr)
	return err
}

// EncodeModules returns the bytes of kernel/modules.json.
func EncodeModules(modules []Module) ([]byte, error) {
	sorted := append([]Module{}, modules...) // "[]" for none, not "null"
	slices.SortStableFunc(sorted, func(a, b Module) int {
		return cmp.Or(cmp.Compare(a.Loaded, b.Loaded), cmp.Compare(a.Addr, b.Addr),
			cmp.Compare(a.Name, b.Name))
	})
	return encodeJSON(sorted)
}

// Modules returns the entry kernel/modules.json; nil if there is none.
func (b *Bundle) Modules() ([]Module, error) {
	var modules []Module
	if err := b.readJSON(ModulesName, maxModules, &modules); err != nil {
		return nil, err
	}
	return modules, nil
}

func encodeJSON(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	return append(b, '\n'), err
}

// readJSON reads an entry of at most so many bytes into v, which stays if there is none.
func (b *Bundle) readJSON(name string, most int64, v any) error {
	data, err := b.ReadEntry(name, most)
	if errors.Is(err, ErrNoEntry) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %s: %w", b.Name, name, err)
	}
	return nil
}

// Compiled is an entry proc/PID/compiled.json: the process whose run-time compiler left the
// entries beside it.
type Compiled struct {
	Began   uint64       `json:"began,omitempty"` // when the process did, ns of REALTIME; 0 if not known
	VDSO    addr.PC      `json:"-"`               // where its vdso lies; 0 if not known
	PerfMap *ForeignFile `json:"perf_map,omitempty"`
	JITDump *ForeignFile `json:"jit_dump,omitempty"`
}

// ForeignFile is a file of another program that an entry is a copy of.
type ForeignFile struct {
	Path    string `json:"path"`    // as the process has it
	Written uint64 `json:"written"` // when it was last, ns of REALTIME
}

type bareCompiled Compiled

type compiledJSON struct {
	*bareCompiled
	VDSO string `json:"vdso,omitempty"`
}

// Encode returns the bytes of the entry.
func (c *Compiled) Encode() ([]byte, error) {
	v := compiledJSON{bareCompiled: (*bareCompiled)(c)}
	if c.VDSO != 0 {
		v.VDSO = hexAddr(c.VDSO)
	}
	return encodeJSON(&v)
}

// UnmarshalJSON reads the entry.
func (c *Compiled) UnmarshalJSON(data []byte) (err error) {
	v := compiledJSON{bareCompiled: (*bareCompiled)(c)}
	if err = json.Unmarshal(data, &v); err == nil {
		c.VDSO, err = parseAddr(v.VDSO)
	}
	return err
}

// Compiled returns the entry proc/PID/compiled.json; it has no facts if there is none.
func (b *Bundle) Compiled(pid int32) (c Compiled, err error) {
	if err := b.readJSON(CompiledName(pid), maxCompiled, &c); err != nil {
		return Compiled{}, err
	}
	return c, nil
}
