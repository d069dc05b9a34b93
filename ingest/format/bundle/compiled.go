package bundle

import (
	"encoding/json"
	"errors"
	"fmt"

	"symbolize/ingest/addr"
)

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
	b, err := json.MarshalIndent(v, "", "  ")
	return append(b, '\n'), err
}

// maxCompiled bounds proc/PID/compiled.json, in bytes.
const maxCompiled = 64 << 10

// Compiled returns the entry proc/PID/compiled.json; it has no facts if there is none.
func (b *Bundle) Compiled(pid int32) (c Compiled, err error) {
	data, err := b.ReadEntry(CompiledName(pid), maxCompiled)
	if errors.Is(err, ErrNoEntry) {
		return c, nil
	}
	v := compiledJSON{bareCompiled: (*bareCompiled)(&c)}
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err == nil {
		c.VDSO, err = parseAddr(v.VDSO)
	}
	if err != nil {
		return Compiled{}, fmt.Errorf("%s: %s: %w", b.Name, CompiledName(pid), err)
	}
	return c, nil
}
