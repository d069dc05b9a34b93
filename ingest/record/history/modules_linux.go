package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/record/sys"
)

// maxModules limits the modules of a capture, including unloaded ones.
const maxModules = 1 << 16

// maxModuleSyms limits the symbols of modules in bytes.
const maxModuleSyms = 64 << 20

// Modules records the kernel modules and their loads and unloads: times from the tracepoints
// module_load and module_free, addresses from /proc/modules. It copies the symbols of modules while
// they are loaded. Drain, Update and RelistSince are safe for concurrent use.
type Modules struct {
	reports ModuleReports
	host    sys.Host
	fds     []int
	points  [2]tracepoint // module_load, module_free
	// list holds every module seen, in order of arrival.
	list []bundle.Module
	syms map[moduleKey][]byte // lines of kallsyms by module and address
	kept int                  // bytes in syms

	changes  *CodeLog // receives loads and unloads of modules; may be nil
	blind    bool     // there are no tracepoints
	relisted uint64   // time of the last list if blind, ns of CLOCK_MONOTONIC

	listed sync.Mutex // guards list and syms, used by concurrent Drain and Add

	mu     sync.Mutex
	events []moduleEvent // since the last drain
}

// ModuleReports are the callbacks of Modules.
type ModuleReports struct {
	Warn func(format string, args ...any)
	Lost func(cause string, n uint64) // counts data that could not be recorded
	Wake func()                       // requests a Drain soon
	// Clocked sets the clock of the rings in the attributes of an event.
	Clocked func(*unix.PerfEventAttr) *unix.PerfEventAttr
}

// moduleKey is a module at an address.
type moduleKey struct {
	name string
	base uint64
}

// moduleEvent is the load or unload of a module.
type moduleEvent struct {
	name string
	time uint64 // rings' clock
	free bool
}

// tracepoint is the layout of a tracepoint's samples.
type tracepoint struct {
	name string
	id   uint64 // perf_event_attr.config
	ids  []uint64
	at   int // offset of the field "name" in the raw data
}

// NewModules returns Modules for a host.
func NewModules(h sys.Host, reports ModuleReports) *Modules {
	return &Modules{reports: reports, host: h, syms: make(map[moduleKey][]byte),
		points: [2]tracepoint{{name: "module_load"}, {name: "module_free"}}}
}

// SetChanges sets a log that receives the times and addresses of loads and unloads. It must be
// called before Start.
func (m *Modules) SetChanges(log *CodeLog) { m.changes = log }

// Open makes the tracepoints write into the rings. A kernel without module support has none;
// tracepoints that cannot be opened otherwise are reported as lost.
func (m *Modules) Open(rings []*sys.Ring) {
	if _, err := os.Stat(m.host.Path("/proc/modules")); errors.Is(err, fs.ErrNotExist) {
		return
	}
	for i := range m.points {
		t := &m.points[i]
		if err := m.openPoint(t, rings); err != nil {
			m.reports.Warn("modules that are loaded or unloaded meanwhile have no times: %s: %v", t.name,
				err)
			m.blind = true
			return
		}
	}
}

func (m *Modules) openPoint(t *tracepoint, rings []*sys.Ring) error {
	if err := m.describe(t); err != nil {
		return err
	}
	for _, r := range rings {
		// Each sample wakes the reader, like the ring's own watermark.
		fd, id, err := sys.OpenEvent(m.reports.Clocked(&unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT,
			Config: t.id, Sample: 1, Wakeup: 1,
			Sample_type: uint64(sys.SampleType | perfdata.SampleRaw)}), -1, r.CPU)
		if err == nil {
			err = r.Redirect(fd)
		}
		if err != nil {
			return err
		}
		m.fds = append(m.fds, fd)
		t.ids = append(t.ids, id)
	}
	return nil
}

// describe finds the id of a tracepoint and the offset of the module's name.
func (m *Modules) describe(t *tracepoint) (err error) {
	var number, format []byte
	for _, dir := range sys.TracingDirs {
		base := m.host.Path(dir) + "/events/module/" + t.name
		if number, err = os.ReadFile(base + "/id"); err == nil {
			format, err = os.ReadFile(base + "/format")
		}
		if err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if t.id, err = strconv.ParseUint(strings.TrimSpace(string(number)), 10, 64); err != nil {
		return err
	}
	t.at, err = nameOffset(string(format))
	return err
}

// nameOffset finds the field "__data_loc char[] name" in a tracepoint's format.
func nameOffset(format string) (int, error) {
	for line := range strings.Lines(format) {
		if !strings.Contains(line, "__data_loc char[] name;") {
			continue
		}
		if _, rest, ok := strings.Cut(line, "offset:"); ok {
			number, _, _ := strings.Cut(rest, ";")
			at, err := strconv.ParseUint(number, 10, 16)
			return int(at), err
		}
	}
	return 0, errors.New("no field \"name\" in its format")
}

// Sample handles a sample of one of the tracepoints: u64 id, u32 pid, u32 tid, u64 time, u32 cpu,
// u32 res, u32 size, raw data.
func (m *Modules) Sample(rec []byte) {
	const rawAt = sys.RecordHeader + 36
	if len(rec) < rawAt {
		return
	}
	order := binary.NativeEndian
	id := order.Uint64(rec[sys.RecordHeader:])
	for i := range m.points {
		t := &m.points[i]
		if !slices.Contains(t.ids, id) {
			continue
		}
		raw := rec[rawAt:]
		raw = raw[:min(len(raw), int(order.Uint32(rec[rawAt-4:])))]
		if name := t.moduleName(raw); name != "" {
			at := order.Uint64(rec[sys.RecordHeader+16:])
			m.event(moduleEvent{name: name, time: at, free: i == 1})
		}
	}
}

// moduleName returns the name in a sample's raw data, or "".
func (t *tracepoint) moduleName(raw []byte) string {
	if len(raw) < t.at+4 {
		return ""
	}
	loc := binary.NativeEndian.Uint32(raw[t.at:]) // size << 16 | offset
	at, size := int(loc&0xffff), int(loc>>16)
	if at > len(raw) || size > len(raw)-at {
		return ""
	}
	name, _, _ := bytes.Cut(raw[at:at+size], []byte{0})
	return string(name)
}

func (m *Modules) event(e moduleEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.events) < maxModules {
		m.events = append(m.events, e)
	}
	m.reports.Wake()
}

// Start adds the loaded modules and their symbols.
func (m *Modules) Start() {
	m.relisted = m.host.Monotonic()
	if m.read(nil) {
		m.readSymbols()
	}
}

// Drain handles loaded and unloaded modules. Safe for concurrent use.
func (m *Modules) Drain() {
	m.listed.Lock() // first: a concurrent call without events must wait until this one is done
	defer m.listed.Unlock()
	m.mu.Lock()
	events := m.events
	m.events = nil
	m.mu.Unlock()
	loads := make(map[string]uint64)
	for _, e := range events {
		if e.free {
			m.free(e, loads)
		} else {
			loads[e.name] = e.time
		}
	}
	if len(loads) > 0 && m.read(loads) {
		m.readSymbols()
	}
}

// free ends the newest module of this name. A module loaded and unloaded between two drains has no
// address.
func (m *Modules) free(e moduleEvent, loads map[string]uint64) {
	if loaded, ok := loads[e.name]; ok {
		delete(loads, e.name)
		m.reports.Lost("modules that went before they could be read", 1)
		m.append(bundle.Module{Name: e.name, Loaded: loaded, Unloaded: e.time})
		return
	}
	for i, o := range slices.Backward(m.list) {
		if o.Name == e.name && o.Unloaded == 0 {
			m.list[i].Unloaded = e.time
			m.changes.Add(e.time, uint64(o.Addr), o.Size)
			return
		}
	}
}

func (m *Modules) append(x bundle.Module) {
	if len(m.list) >= maxModules {
		m.reports.Lost("modules beyond the limit", 1)
		return
	}
	m.list = append(m.list, x)
}

// read reads /proc/modules and adds unknown modules, with the times of loads. It reports whether
// there were any.
func (m *Modules) read(loads map[string]uint64) bool {
	b, err := os.ReadFile(m.host.Path("/proc/modules"))
	if errors.Is(err, fs.ErrNotExist) {
		return false // a kernel without module support
	}
	if err != nil {
		m.reports.Warn("modules: %v", err)
		return false
	}
	known := make(map[moduleKey]bool)
	for _, o := range m.list {
		if o.Unloaded == 0 {
			known[moduleKey{o.Name, uint64(o.Addr)}] = true
		}
	}
	added := false
	for line := range strings.Lines(string(b)) {
		row, ok := procmaps.ParseModule(line)
		if !ok || known[moduleKey{row.Name, uint64(row.Addr)}] {
			continue
		}
		x := bundle.Module{Name: row.Name, Addr: bundle.HexAddr(row.Addr), Size: row.Size,
			Loaded: loads[row.Name]}
		notes, err := os.ReadFile(m.host.Path("/sys/module/" + x.Name + "/notes/.note.gnu.build-id"))
		if err == nil {
			x.BuildID.ID, _ = buildid.FromNotes(notes, perfdata.NativeBigEndian(), 4)
		}
		if x.BuildID.IsZero() {
			m.reports.Lost("build IDs of modules", 1)
		}
		m.append(x)
		m.changes.Add(x.Loaded, uint64(x.Addr), x.Size)
		added = true
	}
	return added
}

// Update handles all changes so far. Safe for concurrent use.
func (m *Modules) Update() {
	m.Drain()
	m.relist()
}

// readSymbols copies the current symbols of modules.
func (m *Modules) readSymbols() {
	f, err := os.Open(m.host.Path("/proc/kallsyms"))
	if err != nil {
		m.reports.Warn("symbols of modules: %v", err)
		return
	}
	defer f.Close()
	at := make(map[string]moduleKey) // modules without symbols
	for _, o := range m.list {
		key := moduleKey{o.Name, uint64(o.Addr)}
		if o.Unloaded == 0 && m.syms[key] == nil {
			at[o.Name] = key
		}
	}
	err = symlist.ReadKallsyms("/proc/kallsyms", f, func(s symlist.KernelSymbol) bool {
		key, ok := at[s.Module]
		if !ok || s.Module == "" {
			return true
		}
		line := fmt.Sprintf("%016x %c %s\t[%s]\n", s.Addr, s.Type, s.Name, s.Module)
		m.kept += len(line)
		m.syms[key] = append(m.syms[key], line...)
		return m.kept < maxModuleSyms
	})
	if err != nil && !errors.Is(err, symlist.ErrRestricted) {
		m.reports.Warn("symbols of modules: %v", err)
	}
	if m.kept >= maxModuleSyms {
		m.reports.Lost("symbols of modules: too many", 1)
	}
}

// Add adds the list of modules to a bundle, and returns its length.
func (m *Modules) Add(w *bundle.Writer) (n int, err error) {
	m.listed.Lock()
	defer m.listed.Unlock()
	b, err := bundle.EncodeModules(m.list)
	if err != nil {
		return 0, err
	}
	return len(m.list), w.Add(bundle.ModulesName, b)
}

// Close closes the tracepoints. It can be called without Start.
func (m *Modules) Close() {
	for _, fd := range m.fds {
		unix.Close(fd)
	}
	m.fds = nil
}

// relist finds, without tracepoints, the modules loaded and unloaded since its last call: code
// changed in that span is unknown. Safe for concurrent use.
func (m *Modules) relist() {
	m.listed.Lock()
	defer m.listed.Unlock()
	if m.blind {
		m.compare()
	}
}

// RelistSince finds the modules loaded and unloaded since a time from which on samples of the
// tracepoints may have been lost.
func (m *Modules) RelistSince(time uint64) {
	m.Drain()
	m.listed.Lock()
	defer m.listed.Unlock()
	m.relisted = time
	m.compare()
}

// compare does the work of relist, with m.listed held.
func (m *Modules) compare() {
	b, err := os.ReadFile(m.host.Path("/proc/modules"))
	if err != nil {
		return // read has reported the error
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
			m.changes.LoseRange(m.relisted, now, uint64(o.Addr), o.Size)
		}
	}
	n := len(m.list)
	if m.read(loads) {
		m.readSymbols()
	}
	for _, o := range m.list[n:] {
		m.changes.LoseRange(m.relisted, now, uint64(o.Addr), o.Size)
	}
	m.relisted = now
}

// Gone returns the symbols of modules that were unloaded, as lines of kallsyms.
func (m *Modules) Gone() []byte {
	m.listed.Lock()
	defer m.listed.Unlock()
	there := make(map[moduleKey]bool)
	for _, o := range m.list {
		if o.Unloaded == 0 {
			there[moduleKey{o.Name, uint64(o.Addr)}] = true
		}
	}
	keys := slices.SortedFunc(maps.Keys(m.syms), func(a, b moduleKey) int {
		if a.name != b.name {
			return strings.Compare(a.name, b.name)
		}
		return int(min(max(int64(a.base-b.base), -1), 1))
	})
	var out []byte
	for _, key := range keys {
		if !there[key] {
			out = append(out, m.syms[key]...)
		}
	}
	return out
}

// Forget removes modules unloaded before a time, which no further bundle contains.
func (m *Modules) Forget(before uint64) {
	m.listed.Lock()
	defer m.listed.Unlock()
	gone := make(map[moduleKey]bool)
	m.list = slices.DeleteFunc(m.list, func(o bundle.Module) bool {
		if o.Unloaded == 0 || o.Unloaded >= before {
			return false
		}
		gone[moduleKey{o.Name, uint64(o.Addr)}] = true
		return true
	})
	for _, o := range m.list {
		delete(gone, moduleKey{o.Name, uint64(o.Addr)})
	}
	for key := range gone {
		m.kept -= len(m.syms[key])
		delete(m.syms, key)
	}
}
