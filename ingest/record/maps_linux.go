package record

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/record/sys"
)

// Limits of the data of maps.
const (
	maxSeries      = 64      // watched maps
	maxMapDumps    = 1 << 16 // in a bundle
	maxMapSpool    = 4 << 30 // bytes of all dumps
	maxMapBTF      = 64 << 20
	minMapInterval = 10 * time.Millisecond
)

// mapSeries dumps maps at intervals. A map is open only while it is read: the capture keeps no map
// alive.
type mapSeries struct {
	s        *recording
	reader   *sys.MapReader
	blobs    *sys.ProgramReader
	selected []*selectedMap
	maps     []*seriesMap
	lastID   uint32
	begin    time.Time
	looked   uint64 // CLOCK_MONOTONIC of the last search for maps; 0 before the first
	spool    *spool
	names    []string // of the entries, by number in the spool
	btf      []mapBTF
	buf      []byte
	quit     chan struct{}
	done     chan struct{}
	full     bool
	err      error

	mu       sync.Mutex // held while maps are searched and dumped
	addedBTF int        // number of btf entries added by addBTF
	flushed  int        // dumps added by flush
}

// selectedMap is an element of Options.Maps.
type selectedMap struct {
	text string
	id   uint32 // 0: any map of this name
	seen bool
}

// seriesMap is a watched map.
type seriesMap struct {
	id     uint32
	name   string
	dumps  int
	gone   bool
	failed string // last error, reported once
}

type mapBTF struct {
	id   uint32
	blob []byte
}

func newMapSeries(s *recording) *mapSeries {
	m := &mapSeries{s: s, reader: &sys.MapReader{CPUs: possibleCPUs(&s.host)},
		blobs: &sys.ProgramReader{}}
	for _, text := range s.opts.Maps {
		w := &selectedMap{text: text}
		if id, err := strconv.ParseUint(text, 10, 32); err == nil {
			w.id = uint32(id)
		}
		m.selected = append(m.selected, w)
	}
	return m
}

// start makes the first dumps. A missing map is an error unless a command runs that may create it.
func (m *mapSeries) start() (err error) {
	if m.spool, err = newSpool(); err != nil {
		return err
	}
	m.begin = time.Now()
	if err := m.find(); err != nil {
		return err
	}
	for _, w := range m.selected {
		if !w.seen && (w.id != 0 || len(m.s.opts.Command) == 0) {
			return fmt.Errorf("%w: %s", ErrNoMap, w.text)
		}
	}
	m.tick()
	m.quit, m.done = make(chan struct{}), make(chan struct{})
	go m.run()
	return nil
}

func (m *mapSeries) run() {
	defer close(m.done)
	t := time.NewTicker(max(minMapInterval, m.s.opts.MapInterval))
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-m.quit:
			return
		}
		m.mu.Lock()
		err := m.find()
		if err == nil {
			m.tick()
		}
		m.mu.Unlock()
		if err != nil {
			m.s.warn("maps could not be listed: %v", err)
			return
		}
	}
}

func (m *mapSeries) drain() time.Duration { return 0 }

// stop makes the last dumps, and reports the maps that never existed.
func (m *mapSeries) stop() {
	close(m.quit)
	<-m.done
	if m.find() == nil {
		m.tick()
	}
	for _, w := range m.selected {
		if !w.seen {
			m.s.warn("map %s never existed", w.text)
		}
	}
}

// find searches for new selected maps. Ids grow: ids up to the last one were already seen.
func (m *mapSeries) find() error {
	clocks, _ := sys.SystemClocks()
	defer func() { m.looked = clocks.Monotonic }()
	for {
		id, err := sys.NextMap(m.lastID)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil
		case errors.Is(err, os.ErrPermission):
			return fmt.Errorf("%w: maps: %w", ErrRights, err)
		case err != nil:
			return err
		}
		m.lastID = id
		if err := m.consider(id); err != nil {
			return err
		}
	}
}

// consider watches a map if it is selected.
func (m *mapSeries) consider(id uint32) error {
	fd, err := sys.OpenMap(id)
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: map %d: %w", ErrRights, id, err)
	}
	if err != nil {
		return nil // gone meanwhile
	}
	defer unix.Close(fd)
	h, err := m.reader.Header(fd)
	if err != nil {
		return nil
	}
	for _, w := range m.selected {
		if w.id != id && (w.id != 0 || w.text != h.Name) {
			continue
		}
		found := w.seen
		w.seen = true
		if len(m.maps) >= maxSeries {
			m.s.lost("maps beyond the limit", 1)
			return nil
		}
		if found {
			m.s.warn("map %s: another map with this name, id %d, exists from %s on", h.Name, id,
				m.now())
		}
		x := &seriesMap{id: id, name: h.Name}
		m.maps = append(m.maps, x)
		m.s.summary.Maps++
		m.keepBTF(&h)
		return m.noteCreated(x, h)
	}
	return nil
}

// noteCreated adds a dump without pairs at the time of the search before, when the map did not exist:
// its counts begin at zero.
func (m *mapSeries) noteCreated(x *seriesMap, h rawdump.Header) error {
	if m.looked == 0 {
		return nil
	}
	h.Time, h.Entries = m.looked, 0
	empty, err := rawdump.Append(nil, h, nil)
	if err != nil {
		return err
	}
	return m.keep(x, empty)
}

// now is the time since the first dump, for messages.
func (m *mapSeries) now() string { return time.Since(m.begin).Round(time.Millisecond).String() }

// keepBTF reads the BTF of a map while the map keeps it loaded.
func (m *mapSeries) keepBTF(h *rawdump.Header) {
	if h.BTFID == 0 {
		return
	}
	size := 0
	for _, b := range m.btf {
		if b.id == h.BTFID {
			return
		}
		size += len(b.blob)
	}
	blob, err := m.blobs.BTF(h.BTFID)
	if err == nil && size+len(blob) > maxMapBTF {
		err = sys.ErrTooLarge
	}
	if err != nil {
		m.s.lost("BTF of maps: "+sys.Reason(err), 1)
		return
	}
	m.btf = append(m.btf, mapBTF{h.BTFID, append([]byte(nil), blob...)})
}

// tick dumps all maps that still exist.
func (m *mapSeries) tick() {
	for _, x := range m.maps {
		if !x.gone {
			m.dump(x)
		}
	}
}

func (m *mapSeries) dump(x *seriesMap) {
	fd, err := sys.OpenMap(x.id)
	if errors.Is(err, os.ErrNotExist) {
		x.gone = true
		m.s.warn("map %s (id %d) was removed after %s and %d dumps", x.name, x.id,
			m.now(), x.dumps)
		return
	}
	if err == nil {
		defer unix.Close(fd)
		err = m.read(x, fd)
	}
	if err == nil {
		return
	}
	m.s.lost("dumps of maps: "+err.Error(), 1)
	if reason := err.Error(); reason != x.failed {
		x.failed = reason
		m.s.warn("map %s (id %d) could not be read: %v", x.name, x.id, err)
	}
}

// read dumps a map into the spool.
func (m *mapSeries) read(x *seriesMap, fd int) error {
	h, err := m.reader.Header(fd)
	if err != nil {
		return err
	}
	clocks, _ := sys.SystemClocks()
	h.Time = clocks.Monotonic
	if m.buf, err = m.reader.Dump(m.buf[:0], fd, &h); err != nil {
		return err
	}
	return m.keep(x, m.buf)
}

// keep adds a dump to the spool.
func (m *mapSeries) keep(x *seriesMap, dump []byte) error {
	if m.flushed+len(m.names) >= maxMapDumps || m.spool.size+int64(len(dump)) > maxMapSpool {
		m.s.lost("dumps of maps beyond the limit", 1)
		if !m.full {
			m.full = true
			m.s.warn("no more dumps of maps after %s: %d dumps, %d bytes; choose a longer "+
				"interval", m.now(), len(m.names), m.spool.size)
		}
		return nil
	}
	if err := m.spool.add(uint32(len(m.names)), dump); err != nil {
		m.err = err
		return err
	}
	x.dumps++
	m.names = append(m.names, bundle.SeriesName(x.name, x.id, x.dumps))
	return nil
}

// add adds the dumps to the bundle.
func (m *mapSeries) add(w *bundle.Writer) error {
	if m.err != nil {
		return m.err
	}
	m.s.summary.MapDumps = m.flushed + len(m.names)
	for _, e := range m.spool.entries {
		b, err := m.spool.read(e, m.buf)
		if err != nil {
			return err
		}
		m.buf = b
		if err := w.Add(m.names[e.id], b); err != nil {
			return err
		}
	}
	return nil
}

// flush adds the dumps since the last flush to a bundle, and forgets them.
func (m *mapSeries) flush(w *bundle.Writer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.add(w); err != nil {
		return err
	}
	m.flushed += len(m.names)
	m.names = m.names[:0]
	return m.spool.reset()
}

// newFile makes the BTF of maps be added again, to another bundle.
func (m *mapSeries) newFile() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addedBTF = 0
}

// addBTF adds the BTF of maps that was not added yet.
func (m *mapSeries) addBTF(to *programs) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.btf[m.addedBTF:] {
		if !to.btfs[b.id] {
			to.addBTF(b.id, b.blob)
		}
	}
	m.addedBTF = len(m.btf)
}

func (m *mapSeries) close() {
	if m.spool != nil {
		m.spool.close()
	}
}
