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

// Module is an entry of kernel/modules.json: a kernel module that was loaded at
// some time of the recording.
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
	b, err := json.MarshalIndent(sorted, "", "  ")
	return append(b, '\n'), err
}

// maxModules bounds modules.json, in bytes.
const maxModules = 64 << 20

// Modules returns the entry kernel/modules.json; nil if there is none.
func (b *Bundle) Modules() ([]Module, error) {
	data, err := b.ReadEntry(ModulesName, maxModules)
	if errors.Is(err, ErrNoEntry) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var modules []Module
	if err := json.Unmarshal(data, &modules); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", b.Name, ModulesName, err)
	}
	return modules, nil
}
