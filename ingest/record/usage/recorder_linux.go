package usage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/record/sys"
)

const (
	// countEvery is the interval of reading the programs' counts: runs between the last reading and
	// the unload of a program are lost.
	countEvery = 100 * time.Millisecond
	// watchEvery is the interval of listing programs if runs are not counted.
	watchEvery = time.Second
	// minShare: the pause between two readings is at least this many times the duration of one.
	minShare = 50
	// maxPrograms limits the programs of a list, of some hundred bytes each.
	maxPrograms = 1 << 16
	// maxMaps limits the maps of a program.
	maxMaps = 256
)

// Recorder records how often and how long BPF programs run, and which maps they use.
type Recorder struct {
	reports Reports
	count   bool      // make the kernel count runs
	stats   io.Closer // makes the kernel count runs; nil: not requested
	counted bool      // the kernel counts runs
	info    []byte    // struct bpf_prog_info
	ids     []byte    // of a program's maps
	maps    *sys.MapReader

	mu       sync.Mutex // held while programs are read or handed out
	begin    uint64     // of the current list, ns of CLOCK_BOOTTIME
	end      uint64     // of the last poll
	polled   uint64     // polls so far
	programs map[uint32]*program
	lost     uint64
	lostID   uint32 // newest of the lost programs

	quit, done chan struct{}
}

// Reports are the callbacks of a Recorder.
type Reports struct {
	Log func(format string, args ...any)
	// Ahead gets losses known before the recording starts.
	Ahead func(text string)
	// Maps returns the maps for bpf.Stats.Maps.
	Maps func() []bpf.MapStats
}

// NewRecorder makes a Recorder. count makes the kernel count the runs of programs meanwhile.
func NewRecorder(count bool, reports Reports) *Recorder {
	return &Recorder{reports: reports, count: count, info: make([]byte, bpf.InfoLen),
		maps: &sys.MapReader{}, programs: make(map[uint32]*program)}
}

// Start makes the kernel count runs, if requested, and starts reading the counts.
func (c *Recorder) Start() {
	if c.count {
		var err error
		if c.stats, err = ebpf.EnableStats(unix.BPF_STATS_RUN_TIME); err != nil {
			c.reports.Ahead(fmt.Sprintf("runs of BPF programs are not counted: %v "+
				"(it needs CAP_SYS_ADMIN and Linux 5.8; before, sysctl kernel.bpf_stats_enabled=1)", err))
		}
	}
	c.counted = c.stats != nil || statsEnabled()
	c.begin = boottime()
	c.poll()
	c.quit, c.done = make(chan struct{}), make(chan struct{})
	go c.loop()
}

// statsEnabled reports whether counting is already enabled in the kernel.
func statsEnabled() bool {
	b, err := os.ReadFile("/proc/sys/kernel/bpf_stats_enabled")
	return err == nil && strings.TrimSpace(string(b)) == "1"
}

// boottime returns the time in ns, by the clock of load times.
func boottime() uint64 {
	clocks, _ := sys.SystemClocks()
	return clocks.Boottime
}

func (c *Recorder) loop() {
	defer close(c.done)
	least := time.Duration(watchEvery)
	if c.counted {
		least = countEvery
	}
	for pause := least; ; {
		timer := time.NewTimer(pause)
		select {
		case <-c.quit:
			timer.Stop()
			return
		case <-timer.C:
		}
		began := time.Now()
		c.poll()
		pause = max(least, minShare*time.Since(began))
	}
}

// Stop reads the counts a last time.
func (c *Recorder) Stop() {
	if c.quit == nil {
		return
	}
	close(c.quit)
	<-c.done
	c.quit = nil
	c.poll()
}

// Close stops the kernel's counting, as does the end of this process.
func (c *Recorder) Close() {
	if c.stats != nil {
		if err := c.stats.Close(); err != nil {
			c.reports.Log("statistics of BPF programs: %v", err)
		}
		c.stats = nil
	}
}

// poll reads the counts of all programs.
func (c *Recorder) poll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.polled++
	for id := uint32(0); ; {
		next, err := sys.NextProgram(id)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				c.reports.Log("BPF programs could not be listed: %v", err)
				return // the programs still exist
			}
			break
		}
		id = next
		c.read(id)
	}
	c.end = boottime()
	for _, p := range c.programs {
		p.Gone = p.Gone || p.at != c.polled
	}
}

// read reads the counts of a program, and its description if the program is new.
func (c *Recorder) read(id uint32) {
	p := c.programs[id]
	if p == nil && len(c.programs) >= maxPrograms {
		if id > c.lostID { // ids grow
			c.lost, c.lostID = c.lost+1, id
		}
		return
	}
	fd, err := sys.OpenProgram(id)
	if err != nil {
		return // unloaded
	}
	defer unix.Close(fd)
	clear(c.info)
	if _, err := sys.BPFInfo(fd, c.info); err != nil {
		return
	}
	now := boottime()
	if p == nil {
		p = c.addProgram(id, fd, now)
	}
	p.last = countersOf(c.info)
	p.at, p.Last = c.polled, now
}

// Runs returns the number and total time of all programs' runs; ok is false if the kernel did not
// count.
func (c *Recorder) Runs() (runs uint64, took time.Duration, ok bool) {
	if !c.counted {
		return 0, 0, false
	}
	var sum counters
	for _, p := range c.programs {
		n := p.last.since(p.base)
		sum.runs += n.runs
		sum.time += n.time
	}
	return sum.runs, time.Duration(sum.time), true
}

// Add adds the list since the start of the bundle.
func (c *Recorder) Add(w *bundle.Writer) error {
	if c.quit != nil {
		c.poll()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &bpf.Stats{Lost: c.lost, Maps: c.reports.Maps()}
	if c.counted {
		l.Begin, l.End = c.begin, c.end
	}
	for _, id := range slices.Sorted(maps.Keys(c.programs)) {
		p := c.programs[id]
		runs := p.last.since(p.base)
		p.Runs, p.RunTime, p.Missed = runs.runs, runs.time, runs.missed
		l.Programs = append(l.Programs, p.ProgramStats)
	}
	data, err := bpf.EncodeStats(l)
	if err != nil {
		return err
	}
	return w.Add(bundle.BPFStatsName, data)
}

// NewFile starts a list for another bundle.
func (c *Recorder) NewFile() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin, c.lost = c.end, 0
	for id, p := range c.programs {
		if p.Gone {
			delete(c.programs, id)
		}
		p.base, p.First = p.last, c.begin
	}
}

// program is a program of the current list.
type program struct {
	bpf.ProgramStats
	base counters // counters at the start of the list
	last counters
	at   uint64 // number of the last poll that saw it
}

// counters are fields of struct bpf_prog_info.
type counters struct{ time, runs, missed uint64 }

func (x counters) since(base counters) counters {
	return counters{x.time - base.time, x.runs - base.runs, x.missed - base.missed}
}

// Fields of struct bpf_prog_info.
const (
	infoLoadedAt = 40
	infoUIDAt    = 48
	infoMapsAt   = 52
	infoMapIDsAt = 56
	infoNameAt   = 64
	infoNameEnd  = 80
	infoTimeAt   = 192
	infoRunsAt   = 200
	infoMissedAt = 208
)

func countersOf(info []byte) counters {
	order := binary.NativeEndian
	return counters{order.Uint64(info[infoTimeAt:]), order.Uint64(info[infoRunsAt:]),
		order.Uint64(info[infoMissedAt:])}
}

// addProgram adds a program after its info was read. Earlier runs of a present program are not
// counted.
func (c *Recorder) addProgram(id uint32, fd int, now uint64) *program {
	order := binary.NativeEndian
	p := &program{ProgramStats: bpf.ProgramStats{ID: id, Type: order.Uint32(c.info),
		Tag:  bpf.Tag(c.info[bpf.InfoTagAt:]).String(),
		Name: unix.ByteSliceToString(c.info[infoNameAt:infoNameEnd]),
		UID:  order.Uint32(c.info[infoUIDAt:]), Loaded: order.Uint64(c.info[infoLoadedAt:]),
		First: now}}
	if p.Loaded < c.begin {
		p.base, p.First = countersOf(c.info), c.begin
	}
	c.programs[id] = p
	n := min(order.Uint32(c.info[infoMapsAt:]), maxMaps)
	if n == 0 {
		return p
	}
	last := slices.Clone(c.info)
	c.ids = slices.Grow(c.ids[:0], int(n)*4)[:n*4]
	clear(c.info)
	order.PutUint32(c.info[infoMapsAt:], n)
	order.PutUint64(c.info[infoMapIDsAt:], sys.Address(c.ids))
	if _, err := sys.BPFInfo(fd, c.info); err == nil {
		for ids := c.ids; len(ids) >= 4; ids = ids[4:] {
			p.Maps = append(p.Maps, c.mapOf(order.Uint32(ids)))
		}
	}
	copy(c.info, last)
	return p
}

// mapOf describes a map as far as it is readable.
func (c *Recorder) mapOf(id uint32) bpf.MapStats {
	h, _ := c.maps.Describe(id) // empty if it is not readable
	return bpf.MapStats{ID: id, Name: h.Name, Type: h.Type}
}
