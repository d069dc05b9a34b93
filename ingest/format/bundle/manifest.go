package bundle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/addr"
)

// Format is the version of the bundle format that this package writes, and the newest that it
// reads.
const Format = 5

// formatStates is the version of bundles with the states of threads, but without their wakers.
const formatStates = 4

// formatTimed is the version of bundles with stacks, but without the states of threads.
const formatTimed = 3

// formatPlain is the version of bundles without stacks, so that older readers accept them.
const formatPlain = 1

// Manifest describes the host and boot of a bundle. Its JSON form is specified in the package
// comment. Unknown fields are zero.
type Manifest struct {
	Format        int               `json:"format"` // set by Commit
	Recorder      string            `json:"recorder"`
	Machine       string            `json:"machine"`    // uname -m
	ByteOrder     string            `json:"byte_order"` // "little" or "big"
	PageSize      int               `json:"page_size"`
	CPUs          int               `json:"cpus,omitempty"` // possible CPUs
	Host          string            `json:"host"`
	BootID        string            `json:"boot_id"`
	OSRelease     string            `json:"os_release"`      // uname -r
	KernelBuildID string            `json:"kernel_build_id"` // hexadecimal
	Begin         Clocks            `json:"begin"`
	End           Clocks            `json:"end"`
	Lost          map[string]uint64 `json:"lost,omitempty"`    // by cause
	Missing       []MissingProgram  `json:"missing,omitempty"` // by ID
	Warnings      []string          `json:"warnings,omitempty"`
	Command       []string          `json:"command,omitempty"`
	Recordings    []Recording       `json:"recordings,omitempty"` // written by Command
	Samples       []Samples         `json:"samples,omitempty"`
	// KernelOmitted is set if kernel/kallsyms has only the symbols of the kernel that locate it: a
	// store has the others.
	KernelOmitted bool        `json:"kernel_omitted,omitempty"`
	Entries       []EntryInfo `json:"entries"` // set by Commit
	Text          HexAddr     `json:"text"`    // of _text at run time; 0 if hidden
}

// MissingProgram is a BPF program without recorded code.
type MissingProgram struct {
	ID     uint32 `json:"id"`
	Symbol string `json:"symbol,omitempty"` // the kernel's name; "" if unknown
	Reason string `json:"reason"`           // a text of package bpf, or another
}

// Samples names the dumps with the stacks sampled at an event, and the weight of its samples. Key,
// Value and Weight are in the syntax of package stackmap.
type Samples struct {
	Event        string `json:"event"`         // perf's name, "cpu-clock"
	Unit         string `json:"unit"`          // of weights: "nanoseconds" or "count"
	Period       uint64 `json:"period"`        // weight of one sample; 0: see Weight
	Stacks       string `json:"stacks"`        // entry with the user stacks
	KernelStacks string `json:"kernel_stacks"` // entry with the kernel stacks
	Counts       string `json:"counts"`        // entry with the counts
	Key          string `json:"key"`           // fields of its key
	Value        string `json:"value"`         // place of the number of samples in its value
	Weight       string `json:"weight,omitempty"`
	Files        []File `json:"files,omitempty"`
}

// version returns the oldest version that has all fields of a manifest.
func (m *Manifest) version() int {
	has := func(field string) bool {
		return slices.ContainsFunc(m.Samples, func(s Samples) bool { return strings.Contains(s.Key, field) })
	}
	switch {
	case len(m.Samples) == 0:
		return formatPlain
	case has(",waker_by:"):
		return Format
	case has(",state:"):
		return formatStates
	}
	return formatTimed
}

// File is a file with a build ID in stacks.
type File struct {
	BuildID string `json:"build_id"` // hexadecimal
	Path    string `json:"path"`
}

// Clocks are readings of four clocks at one instant, in ns.
type Clocks struct {
	Perf      uint64 `json:"perf"` // of the records in perf.data
	Monotonic uint64 `json:"monotonic"`
	Boottime  uint64 `json:"boottime"`
	Realtime  uint64 `json:"realtime"` // since 1970
}

// EntryInfo is the manifest's record of another entry.
type EntryInfo struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // hexadecimal
}

// HexAddr is an address that is the text "0x…" in JSON: programs that keep numbers as floating
// point would round it.
type HexAddr addr.PC

// MarshalText returns "0x…".
func (a HexAddr) MarshalText() ([]byte, error) {
	return strconv.AppendUint([]byte("0x"), uint64(a), 16), nil
}

// UnmarshalText parses a number; "" is 0.
func (a *HexAddr) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	v, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return fmt.Errorf("address %q: not a number of 64 bits", text)
	}
	*a = HexAddr(v)
	return nil
}

// HexID is a build ID that is hexadecimal text in JSON.
type HexID struct{ buildid.ID }

// MarshalText returns the hexadecimal digits.
func (id HexID) MarshalText() ([]byte, error) { return []byte(id.Hex()), nil }

// UnmarshalText parses hexadecimal digits; "" is the zero ID.
func (id *HexID) UnmarshalText(text []byte) (err error) {
	if len(text) > 0 {
		id.ID, err = buildid.Parse(string(text))
	}
	return err
}

// KernelID returns the kernel's build ID, zero if there is none.
func (m *Manifest) KernelID() buildid.ID {
	id, err := buildid.Parse(m.KernelBuildID)
	if err != nil {
		return buildid.ID{}
	}
	return id
}

// BigEndian reports the byte order of the recorded host.
func (m *Manifest) BigEndian() bool { return m.ByteOrder == orderBig }

// The values of Manifest.ByteOrder.
const (
	orderLittle = "little"
	orderBig    = "big"
)

// OrderName returns the value of Manifest.ByteOrder for a byte order.
func OrderName(bigEndian bool) string {
	if bigEndian {
		return orderBig
	}
	return orderLittle
}

// Module is an entry of kernel/modules.json: a kernel module loaded before or during the recording.
type Module struct {
	Name     string  `json:"name"`
	Size     uint64  `json:"size"`
	Loaded   uint64  `json:"loaded,omitempty"`   // ns of perf's clock; 0 = before the recording
	Unloaded uint64  `json:"unloaded,omitempty"` // the same; 0 = it stayed
	BuildID  HexID   `json:"build_id,omitzero"`
	Addr     HexAddr `json:"addr"` // of its code; 0 if hidden
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

// readJSON decodes an entry of at most limit bytes into v, which is unchanged if there is none.
func (b *Bundle) readJSON(name string, limit int64, v any) error {
	data, err := b.ReadEntry(name, limit)
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

// Compiled is an entry proc/PID/compiled.json: the process of the perf map and jitdump file beside
// it.
type Compiled struct {
	Began   uint64       `json:"began,omitempty"` // start of the process, ns of REALTIME; or 0
	PerfMap *ForeignFile `json:"perf_map,omitempty"`
	JITDump *ForeignFile `json:"jit_dump,omitempty"`
	VDSO    HexAddr      `json:"vdso,omitempty"` // address of its vdso; 0 if unknown
}

// ForeignFile is a file of another program, copied into an entry.
type ForeignFile struct {
	Path    string `json:"path"`    // as seen by the process
	Written uint64 `json:"written"` // last modification, ns of REALTIME
}

// Encode returns the bytes of the entry.
func (c *Compiled) Encode() ([]byte, error) { return encodeJSON(c) }

// Compiled returns the entry proc/PID/compiled.json; the zero Compiled if there is none.
func (b *Bundle) Compiled(pid int32) (c Compiled, err error) {
	if err := b.readJSON(CompiledName(pid), maxCompiled, &c); err != nil {
		return Compiled{}, err
	}
	return c, nil
}
