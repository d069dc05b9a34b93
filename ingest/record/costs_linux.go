package record

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

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/bpfstats"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/bpfcall"
	"symbolize/ingest/record/bpfread"
	"symbolize/ingest/record/perfevent"
	"symbolize/ingest/record/usage"
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
	// maxCosts bounds the programs of a list; some hundred bytes are kept of each.
	maxCosts = 1 << 16
	// maxUses bounds the attachments, holders and pins of a program, each.
	maxUses = 256
)

// costs records how the BPF programs are used: how often and how long they run, where they are
// attached, which maps they have, who holds them.
type costs struct {
	s       *session
	proc    usage.Options
	stats   io.Closer // has the kernel count runs; nil: it is not asked to
	counted bool      // it counts them
	info    []byte    // struct bpf_prog_info
	ids     []byte    // of a program's maps
	maps    *bpfread.MapReader

	mu       sync.Mutex // held while programs are read, and where they are taken from
	begin    uint64     // of the list at hand, ns of CLOCK_BOOTTIME
	end      uint64     // of the last poll
	polled   uint64     // polls so far
	programs map[uint32]*cost
	lost     uint64
	lostID   uint32 // the newest of those

	unscanned bool // there are programs of which the last scan knew nothing
	scanned   time.Time
	scanTook  time.Duration
	scanErr   string // the last one, reported once

	quit, done chan struct{}
}

// cost is a program of the list at hand.
type cost struct {
	bpfstats.Program
	base counters // of runs before
	last counters
	at   uint64 // when it was met last: the number of the poll
}

// counters are those of struct bpf_prog_info.
type counters struct{ time, runs, missed uint64 }

func newCosts(s *session, proc usage.Options) *costs {
	return &costs{s: s, proc: proc, info: make([]byte, bpf.InfoLen),
		maps: &bpfread.MapReader{}, programs: make(map[uint32]*cost)}
}

// start has the kernel count runs, where that is wanted, and begins to read the counts.
func (c *costs) start() error {
	if c.s.opts.BPFStats {
		var err error
		if c.stats, err = ebpf.EnableStats(unix.BPF_STATS_RUN_TIME); err != nil {
			c.s.warnAhead(fmt.Sprintf("runs of BPF programs are not counted: %v "+
				"(it needs CAP_SYS_ADMIN and Linux 5.8; before, sysctl kernel.bpf_stats_enabled=1)", err))
		}
	}
	c.counted = c.stats != nil || statsEnabled()
	c.begin = boottime()
	c.poll()
	c.scan()
	c.quit, c.done = make(chan struct{}), make(chan struct{})
	go c.loop()
	return nil
}

// statsEnabled reports whether the kernel counts runs anyway.
func statsEnabled() bool {
	b, err := os.ReadFile("/proc/sys/kernel/bpf_stats_enabled")
	return err == nil && strings.TrimSpace(string(b)) == "1"
}

// boottime returns the time of the clock of load times, ns.
func boottime() uint64 {
	clocks, _ := perfevent.SystemClocks()
	return clocks.Boottime
}

func (c *costs) loop() {
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
func (c *costs) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unscanned && time.Since(c.scanned) >= max(scanEvery, leastShare*c.scanTook)
}

func (c *costs) drain() time.Duration { return 0 }

// stop reads the counts for the last time.
func (c *costs) stop() {
	if c.quit == nil {
		return
	}
	close(c.quit)
	<-c.done
	c.quit = nil
	c.poll()
	c.scan()
	c.sum()
}

// close has the kernel count no longer. It does so, too, when this process is killed.
func (c *costs) close() {
	if c.stats != nil {
		if err := c.stats.Close(); err != nil {
			c.s.log("statistics of BPF programs: %v", err)
		}
		c.stats = nil
	}
}

// poll reads the counts of all programs.
func (c *costs) poll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.polled++
	for id := uint32(0); ; {
		next, err := bpfread.NextProgram(id)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				c.s.log("BPF programs could not be listed: %v", err)
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
func (c *costs) read(id uint32) {
	p := c.programs[id]
	if p == nil && len(c.programs) >= maxCosts {
		if id > c.lostID { // ids grow
			c.lost, c.lostID = c.lost+1, id
		}
		return
	}
	fd, err := bpfread.OpenProgram(id)
	if err != nil {
		return // gone
	}
	defer unix.Close(fd)
	clear(c.info)
	if _, err := bpfcall.Info(fd, c.info); err != nil {
		return
	}
	now := boottime()
	if p == nil {
		p = c.meet(id, fd, now)
	}
	p.last = countersOf(c.info)
	p.at, p.Last = c.polled, now
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

// meet adds a program whose info was read. What one had run that was there before is not counted.
func (c *costs) meet(id uint32, fd int, now uint64) *cost {
	order := binary.NativeEndian
	p := &cost{Program: bpfstats.Program{ID: id, Type: order.Uint32(c.info),
		Tag:  bpf.Tag(c.info[bpf.InfoTagAt:]).String(),
		Name: unix.ByteSliceToString(c.info[infoNameAt:infoNameEnd]),
		UID:  order.Uint32(c.info[infoUIDAt:]), Loaded: order.Uint64(c.info[infoLoadedAt:]),
		First: now}}
	if p.Loaded < c.begin {
		p.base, p.First = countersOf(c.info), c.begin
	}
	c.programs[id], c.unscanned = p, true
	n := min(order.Uint32(c.info[infoMapsAt:]), maxUses)
	if n == 0 {
		return p
	}
	last := slices.Clone(c.info)
	c.ids = slices.Grow(c.ids[:0], int(n)*4)[:n*4]
	clear(c.info)
	order.PutUint32(c.info[infoMapsAt:], n)
	order.PutUint64(c.info[infoMapIDsAt:], bpfcall.Address(c.ids))
	if _, err := bpfcall.Info(fd, c.info); err == nil {
		for ids := c.ids; len(ids) >= 4; ids = ids[4:] {
			p.Maps = append(p.Maps, c.mapOf(order.Uint32(ids)))
		}
	}
	copy(c.info, last)
	return p
}

// mapOf describes a map as far as it can be read.
func (c *costs) mapOf(id uint32) bpfstats.Map {
	m := bpfstats.Map{ID: id}
	fd, err := bpfread.OpenMap(id)
	if err != nil {
		return m
	}
	defer unix.Close(fd)
	if h, err := c.maps.Header(fd); err == nil {
		m.Name, m.Type = h.Name, h.Type
	}
	return m
}

// scan finds out where programs are attached and who holds them. What was known of one before
// stays known.
func (c *costs) scan() {
	began := time.Now()
	c.mu.Lock()
	c.unscanned = false // those that come meanwhile need another scan
	c.mu.Unlock()
	uses, err := usage.Scan(c.proc)
	if text := fmt.Sprint(err); err != nil && text != c.scanErr {
		c.scanErr = text
		c.s.warn("where BPF programs are attached is known in part only: %s",
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

// learn adds the results of a scan.
func (p *cost) learn(u *usage.Use) {
	for _, a := range u.Attached {
		i := slices.IndexFunc(p.Attached, func(x bpfstats.Attachment) bool {
			return x.How == a.How && x.To == a.To
		})
		switch {
		case i >= 0:
			p.Attached[i] = a
		case len(p.Attached) < maxUses:
			p.Attached = append(p.Attached, a)
		default:
			p.More++
		}
	}
	p.Holders = union(p.Holders, u.Holders, &p.More)
	p.Pins = union(p.Pins, u.Pins, &p.More)
}

// union appends to a list the items that are new, up to maxUses, and counts the others.
func union[T comparable](to, from []T, more *uint64) []T {
	for _, x := range from {
		switch {
		case slices.Contains(to, x):
		case len(to) < maxUses:
			to = append(to, x)
		default:
			*more++
		}
	}
	return to
}

// sum adds the runs of all programs up for the summary.
func (c *costs) sum() {
	if !c.counted {
		return
	}
	sum := &BPFRuns{}
	for _, p := range c.programs {
		runs := p.last.since(p.base)
		sum.Runs += runs.runs
		sum.Time += time.Duration(runs.time)
	}
	c.s.summary.BPFRuns = sum
}

func (x counters) since(base counters) counters {
	return counters{x.time - base.time, x.runs - base.runs, x.missed - base.missed}
}

// add adds the list since the begin of the bundle.
func (c *costs) add(w *bundle.Writer) error {
	if c.quit != nil {
		c.poll()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &bpfstats.List{Lost: c.lost}
	if c.counted {
		l.Begin, l.End = c.begin, c.end
	}
	for _, id := range slices.Sorted(maps.Keys(c.programs)) {
		p := c.programs[id]
		runs := p.last.since(p.base)
		p.Runs, p.RunTime, p.Missed = runs.runs, runs.time, runs.missed
		l.Programs = append(l.Programs, p.Program)
	}
	data, err := bpfstats.Encode(l)
	if err != nil {
		return err
	}
	return w.Add(bundle.BPFStatsName, data)
}

// again begins a list for another bundle.
func (c *costs) again() {
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
