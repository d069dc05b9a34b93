package usage

import (
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

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/sys"
)

const (
	// countEvery is how often the counts of programs are read: runs of a program between the last
	// reading and its unloading are not known.
	countEvery = 100 * time.Millisecond
	// watchEvery is how often programs are looked for where runs are not counted.
	watchEvery = time.Second
	// scanEvery is how often it is searched where new programs are attached.
	scanEvery = time.Second
	// leastShare: a thing is done again after so many times the time it took.
	leastShare = 50
	// maxPrograms bounds the programs of a list; some hundred bytes are kept of each.
	maxPrograms = 1 << 16
	// maxUses bounds the attachments, holders and pins of a program, each.
	maxUses = 256
)

// Recorder records how the BPF programs are used: how often and how long they run, where they are
// attached, which maps they have, who holds them.
type Recorder struct {
	reports Reports
	proc    Options
	count   bool      // the kernel is to count runs
	stats   io.Closer // has the kernel count runs; nil: it is not asked to
	counted bool      // it counts them
	info    []byte    // struct bpf_prog_info
	ids     []byte    // of a program's maps
	maps    *sys.MapReader

	mu       sync.Mutex // held while programs are read, and where they are taken from
	begin    uint64     // of the list at hand, ns of CLOCK_BOOTTIME
	end      uint64     // of the last poll
	polled   uint64     // polls so far
	programs map[uint32]*program
	lost     uint64
	lostID   uint32 // the newest of those

	unscanned bool // there are programs of which the last scan knew nothing
	scanned   time.Time
	scanTook  time.Duration
	scanErr   string // the last one, reported once

	quit, done chan struct{}
}

// Reports are where a Recorder reports to.
type Reports struct {
	Log  func(format string, args ...any)
	Warn func(format string, args ...any)
	// Ahead is Warn for losses known before the recording starts.
	Ahead func(text string)
}

// NewRecorder makes a Recorder. count has the kernel count the runs of programs meanwhile.
func NewRecorder(proc Options, count bool, reports Reports) *Recorder {
	return &Recorder{reports: reports, proc: proc, count: count, info: make([]byte, bpf.InfoLen),
		maps: &sys.MapReader{}, programs: make(map[uint32]*program)}
}

// Start has the kernel count runs, where that is wanted, and begins to read the counts.
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
	c.scan()
	c.quit, c.done = make(chan struct{}), make(chan struct{})
	go c.loop()
}

// statsEnabled reports whether the kernel counts runs anyway.
func statsEnabled() bool {
	b, err := os.ReadFile("/proc/sys/kernel/bpf_stats_enabled")
	return err == nil && strings.TrimSpace(string(b)) == "1"
}

// boottime returns the time of the clock of load times, ns.
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
		pause = max(least, leastShare*time.Since(began))
		if c.due() {
			c.scan()
		}
	}
}

// due reports whether a scan is to be done.
func (c *Recorder) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unscanned && time.Since(c.scanned) >= max(scanEvery, leastShare*c.scanTook)
}

// Stop reads the counts for the last time.
func (c *Recorder) Stop() {
	if c.quit == nil {
		return
	}
	close(c.quit)
	<-c.done
	c.quit = nil
	c.poll()
	c.scan()
}

// Close has the kernel count no longer. It does so, too, when this process is killed.
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
				return // none of them is gone for that
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

// read reads the counts of a program, and its description if it is new.
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
		return // gone
	}
	defer unix.Close(fd)
	clear(c.info)
	if _, err := sys.BPFInfo(fd, c.info); err != nil {
		return
	}
	now := boottime()
	if p == nil {
		p = c.meet(id, fd, now)
	}
	p.last = countersOf(c.info)
	p.at, p.Last = c.polled, now
}

// scanHost finds out where programs are attached and who holds them. Facts known of one before
// stay known.
func (c *Recorder) scan() {
	began := time.Now()
	c.mu.Lock()
	c.unscanned = false // those that come meanwhile need another scan
	c.mu.Unlock()
	uses, err := scanHost(c.proc)
	if text := fmt.Sprint(err); err != nil && text != c.scanErr {
		c.scanErr = text
		c.reports.Warn("where BPF programs are attached is known in part only: %s",
			strings.ReplaceAll(text, "\n", "; "))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, u := range uses {
		if p := c.programs[id]; p != nil {
			p.learn(u)
		}
	}
	c.scanned, c.scanTook = time.Now(), time.Since(began)
}

// Runs returns how often and how long all programs ran; ok is false if the kernel did not count.
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

// Add adds the list since the begin of the bundle.
func (c *Recorder) Add(w *bundle.Writer) error {
	if c.quit != nil {
		c.poll()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &bpf.Stats{Lost: c.lost}
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

// Again begins a list for another bundle.
func (c *Recorder) Again() {
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
