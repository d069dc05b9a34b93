package history

import (
	"os"
	"strings"

	"symbolize/ingest/format/procmaps"
)

// look finds, where there are no tracepoints, the modules that came and went since it was
// called last: the code there meanwhile is unknown. Any goroutine may call it.
func (m *Modules) look() {
	m.listed.Lock()
	defer m.listed.Unlock()
	if m.blind {
		m.compare()
	}
}

// LookSince finds the modules that came and went since a time, from which on samples of the
// tracepoints may have been lost.
func (m *Modules) LookSince(time uint64) {
	m.Drain()
	m.listed.Lock()
	defer m.listed.Unlock()
	m.looked = time
	m.compare()
}

// compare is look, with m.listed held.
func (m *Modules) compare() {
	b, err := os.ReadFile(m.host.Path("/proc/modules"))
	if err != nil {
		return // read has reported it
	}
	now, there := m.host.Monotonic(), make(map[moduleKey]bool)
	loads := make(map[string]uint64)
	for line := range strings.Lines(string(b)) {
		if x, ok := procmaps.ParseModule(line); ok {
			there[moduleKey{x.Name, uint64(x.Addr)}] = true
			loads[x.Name] = now
		}
	}
	for i := range m.list {
		if o := &m.list[i]; o.Unloaded == 0 && !there[moduleKey{o.Name, uint64(o.Addr)}] {
			o.Unloaded = now
			m.changes.LoseRange(m.looked, now, uint64(o.Addr), o.Size)
		}
	}
	n := len(m.list)
	if m.read(loads) {
		m.readSymbols()
	}
	for _, o := range m.list[n:] {
		m.changes.LoseRange(m.looked, now, uint64(o.Addr), o.Size)
	}
	m.looked = now
}
