package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/object/kallsyms"
	"symbolize/ingest/record/sys"
)

// maxModules bounds the modules of one capture, those of now and of before.
const maxModules = 1 << 16

// maxModuleSyms bounds the symbols that are kept of modules, bytes.
const maxModuleSyms = 64 << 20

// Modules records which kernel modules there are, and when one comes or goes: the
// tracepoints module_load and module_free have the times, /proc/modules the addresses. The
// symbols of modules are taken while they are there. Drain, Settle and LookSince may be called
// by any goroutine.
type Modules struct {
	reports ModuleReports
	host    sys.Host
	fds     []int
	points  [2]tracepoint // module_load, module_free
	// list has every module that there was, in the order in which they were met.
	list []bundle.Module
	syms map[moduleKey][]byte // lines of kallsyms, by module and where it lay
	kept int                  // bytes in syms

	changes *CodeLog // receives loads and unloads of modules; nil: not wanted
	blind   bool     // there is no tracepoint for them
	looked  uint64   // when blind modules were listed last, ns of CLOCK_MONOTONIC

	listed sync.Mutex // guards list and syms, which Drain and Add are called at once for

	mu     sync.Mutex
	events []moduleEvent // since the last drain
}

// ModuleReports are where a Modules reports to.
type ModuleReports struct {
	Warn func(format string, args ...any)
	Lost func(cause string, n uint64) // counts data that could not be recorded
	Wake func()                       // Drain is to be called soon
	// Clocked sets the clock of the rings in the attributes of an event.
	Clocked func(*unix.PerfEventAttr) *unix.PerfEventAttr
}

// moduleKey is a module where it lay.
type moduleKey struct {
	name string
	base uint64
}

// moduleEvent is the load or unload of a module.
type moduleEvent struct {
	name string
	time uint64 // of the rings' clock
	free bool
}

// tracepoint has the layout of its samples.
type tracepoint struct {
	name string
	id   uint64 // its number, perf_event_attr.config
	ids  []uint64
	at   int // offset of the field "name" in the raw data
}

// NewModules makes a Modules of the modules of a host.
func NewModules(h sys.Host, reports ModuleReports) *Modules {
	return &Modules{reports: reports, host: h, syms: make(map[moduleKey][]byte),
		points: [2]tracepoint{{name: "module_load"}, {name: "module_free"}}}
}

// NoteChanges has the times and places of loads and unloads added to a log. It is to be called
// before Start.
func (m *Modules) NoteChanges(log *CodeLog) { m.changes = log }

// Open has the tracepoints write into the rings. A kernel without modules has none; other
// tracepoints that cannot be opened are reported as a loss.
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
		// One sample wakes the reader, like the ring's own watermark.
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

// describe finds out the number of a tracepoint and where the module's name is.
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
	return 0, errors.New("its format has no field \"name\"")
}

// Sample takes in a sample of one of the tracepoints: u64 id, u32 pid, u32 tid, u64
// time, u32 cpu, u32 res, u32 size, raw data.
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

// moduleName returns the name in a sample's raw data; "" if it is not there.
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

// Start takes in the modules that are there, and their symbols.
func (m *Modules) Start() {
	m.looked = m.host.Monotonic()
	if m.read(nil) {
		m.readSymbols()
	}
}

// Drain takes in modules that came or went. Any goroutine may call it.
func (m *Modules) Drain() {
	m.listed.Lock() // first: who finds no events is not to return before they are taken in
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

// free ends the newest module of this name. One that came and went between two drains
// has no address.
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
		m.reports.Lost("modules beyond the bound", 1)
		return
	}
	m.list = append(m.list, x)
}

// read reads /proc/modules and adds those that are not known, with the times of loads; it reports
// whether there were any.
func (m *Modules) read(loads map[string]uint64) bool {
	b, err := os.ReadFile(m.host.Path("/proc/modules"))
	if errors.Is(err, fs.ErrNotExist) {
		return false // a kernel without modules
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

// Settle takes in all changes that there were. Any goroutine may call it.
func (m *Modules) Settle() {
	m.Drain()
	m.look()
}

// readSymbols keeps the symbols of modules as they are now.
func (m *Modules) readSymbols() {
	f, err := os.Open(m.host.Path("/proc/kallsyms"))
	if err != nil {
		m.reports.Warn("symbols of modules: %v", err)
		return
	}
	defer f.Close()
	at := make(map[string]moduleKey) // where each is that has no symbols yet
	for _, o := range m.list {
		key := moduleKey{o.Name, uint64(o.Addr)}
		if o.Unloaded == 0 && m.syms[key] == nil {
			at[o.Name] = key
		}
	}
	err = kallsyms.Read("/proc/kallsyms", f, func(s kallsyms.Symbol) bool {
		key, ok := at[s.Module]
		if !ok || s.Module == "" {
			return true
		}
		line := fmt.Sprintf("%016x %c %s\t[%s]\n", s.Addr, s.Type, s.Name, s.Module)
		m.kept += len(line)
		m.syms[key] = append(m.syms[key], line...)
		return m.kept < maxModuleSyms
	})
	if err != nil && !errors.Is(err, kallsyms.ErrRestricted) {
		m.reports.Warn("symbols of modules: %v", err)
	}
	if m.kept >= maxModuleSyms {
		m.reports.Lost("symbols of modules: too many", 1)
	}
}

// Add adds the list of modules to a bundle, and returns how many there are.
func (m *Modules) Add(w *bundle.Writer) (n int, err error) {
	m.listed.Lock()
	defer m.listed.Unlock()
	b, err := bundle.EncodeModules(m.list)
	if err != nil {
		return 0, err
	}
	return len(m.list), w.Add(bundle.ModulesName, b)
}

// Close closes the tracepoints. It may be called without Start.
func (m *Modules) Close() {
	for _, fd := range m.fds {
		unix.Close(fd)
	}
	m.fds = nil
}
