package record

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/record/sys"
)

// maxPrograms limits the programs of a capture, of 32 bytes each. Further programs are only
// counted.
const maxPrograms = 1 << 20

// programSource reads programs: from the kernel, except in tests.
type programSource interface {
	// Open returns a descriptor, which keeps the program loaded until Close.
	Open(id uint32) (fd int, err error)
	Close(fd int)
	// Program and BTF return the kernel's record of a program, and a BTF by id. Both are valid
	// until the next call.
	Program(fd int) (*bpf.RawProgram, error)
	BTF(id uint32) ([]byte, error)
	// Map describes the map with an id.
	Map(id uint32) (rawdump.Header, error)
}

// runningKernel is the programSource of a recording.
type runningKernel struct {
	sys.ProgramReader
	maps sys.MapReader
}

func (k *runningKernel) Map(id uint32) (rawdump.Header, error) { return k.maps.Describe(id) }

func (*runningKernel) Open(id uint32) (int, error) { return sys.OpenProgram(id) }

func (*runningKernel) Close(fd int) { unix.Close(fd) }

// programs collects BPF programs. Not safe for concurrent use.
type programs struct {
	s      *recording
	source programSource
	infos  *spool // entries of BPF_PROG_INFO
	blobs  *spool // entries of BPF_BTF
	seen   map[uint32]*program
	btfs   map[uint32]bool // in blobs, or not readable
	maps   *typedMaps
	entry  []byte
	err    error // of the spools: disk full

	missingFrom int                               // in Summary.Missing, added by finish
	written     map[uint32]bool                   // programs that present skips
	found       func(start uint64, length uint32) // called with functions that are read
}

// program is the entry of a program in memory.
type program struct {
	tag       bpf.Tag
	loaded    bool     // during the recording: it has KSYMBOL records
	image     bool     // its code was read
	late      bool     // read after a loss of records, perhaps loaded after the start
	presentAt []uint64 // times after losses of records at which it existed
	waited    bool     // missing, but the next part may contain the kernel's copy
	missing   string   // why nothing was read; "" if the info was read
	symbol    string   // of missing programs, from the records
}

func newPrograms(s *recording) (*programs, error) {
	p := &programs{s: s, source: new(runningKernel), seen: make(map[uint32]*program),
		btfs: make(map[uint32]bool), maps: &s.maps}
	var err error
	if p.infos, err = newSpool(); err == nil {
		p.blobs, err = newSpool()
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// maxBTFs limits the BTF ids remembered from one part to the next.
const maxBTFs = 1 << 12

// cut returns the programs read since the last cut, and forgets them. With copies, missing programs
// stay for one more part: their copy may still arrive.
func (p *programs) cut(copies bool) (*programs, error) {
	next, err := newPrograms(p.s)
	if err != nil {
		return nil, err
	}
	next.source, next.entry, next.found = p.source, p.entry, p.found
	if len(p.btfs) < maxBTFs {
		next.btfs = maps.Clone(p.btfs)
	}
	part := *p
	if copies {
		part.seen = make(map[uint32]*program)
		for id, x := range p.seen {
			if x.missing != "" && x.missing != bpf.MissingRights && !x.waited {
				x.waited = true
				next.seen[id] = x
			} else {
				part.seen[id] = x
			}
		}
	}
	*p = *next
	return &part, nil
}

func (p *programs) close() {
	for _, s := range []*spool{p.infos, p.blobs} {
		if s != nil {
			s.close()
		}
	}
}

// load reads a program that a record reports as loaded. It returns nil beyond maxPrograms.
func (p *programs) load(id uint32, tag bpf.Tag) *program {
	x := p.seen[id]
	if x == nil { // otherwise it was read as a present program
		x = p.read(id)
	}
	if x != nil {
		x.tag, x.loaded = tag, true
	}
	return x
}

// present reads a program that existed before the recording.
func (p *programs) present(id uint32) {
	if p.seen[id] == nil && !p.written[id] {
		p.read(id)
	}
}

// presentAt reads a program that existed at this time after a loss of records, for which a record
// is written, and calls found with its functions.
func (p *programs) presentAt(id uint32, at uint64, found func(start uint64, length uint32)) {
	x := p.seen[id]
	if x == nil {
		if x = p.read(id); x == nil {
			return
		}
		x.late = true
	}
	fd, err := p.source.Open(id)
	if err != nil {
		return // unloaded
	}
	defer p.source.Close(fd)
	if raw, err := p.source.Program(fd); err == nil {
		x.presentAt = append(x.presentAt, at)
		functionsOf(raw, found)
	}
}

// functionsOf calls found with the addresses and lengths of a program's functions.
func functionsOf(raw *bpf.RawProgram, found func(start uint64, length uint32)) {
	starts, lengths := raw.Arrays[bpf.ArrayJITedKSyms], raw.Arrays[bpf.ArrayJITedFuncLens]
	for o := binary.NativeEndian; len(starts) >= 8 && len(lengths) >= 4; {
		found(o.Uint64(starts), o.Uint32(lengths))
		starts, lengths = starts[8:], lengths[4:]
	}
}

// read opens a program, which keeps it loaded, and closes it after copying the last byte.
func (p *programs) read(id uint32) *program {
	fd, err := p.source.Open(id)
	if len(p.seen) >= maxPrograms {
		if err == nil {
			p.source.Close(fd)
		}
		p.s.lost("BPF programs beyond the limit", 1)
		return nil
	}
	x := &program{}
	p.seen[id] = x
	if err != nil {
		x.missing = sys.Reason(err)
		return x
	}
	defer p.source.Close(fd)
	raw, err := p.source.Program(fd)
	if err != nil {
		x.missing = sys.Reason(err)
		return x
	}
	p.keep(id, x, raw)
	return x
}

// keep adds a program and its BTF to the spools.
func (p *programs) keep(id uint32, x *program, raw *bpf.RawProgram) {
	if len(raw.Info) >= bpf.InfoTagAt+len(x.tag) {
		x.tag = bpf.Tag(raw.Info[bpf.InfoTagAt:])
	}
	x.image = len(raw.Arrays[bpf.ArrayJITedInsns]) > 0
	if p.found != nil {
		functionsOf(raw, p.found)
	}
	p.entry = bpf.AppendProgram(p.entry[:0], raw)
	p.fail(p.infos.add(id, p.entry))
	if len(raw.Info) >= bpf.InfoBTFAt+4 {
		p.keepBTF(binary.NativeEndian.Uint32(raw.Info[bpf.InfoBTFAt:]))
	}
	// raw is not valid after the next call.
	for ids := slices.Clone(raw.Arrays[bpf.ArrayMapIDs]); len(ids) >= mapIDLen; ids = ids[mapIDLen:] {
		p.keepMap(binary.NativeEndian.Uint32(ids))
	}
}

// mapIDLen is the size of a map's number in an array of them.
const mapIDLen = 4

// keepMap notes a map with the type of its values, and keeps its BTF.
func (p *programs) keepMap(id uint32) {
	m, ok := p.maps.find(id)
	if !ok {
		h, err := p.source.Map(id)
		if err != nil {
			return // no rights, or gone
		}
		m = bpf.MapStats{ID: id, Name: h.Name, Type: h.Type, BTF: h.BTFID, Value: h.ValueType, ValueSize: h.ValueSize,
			Entries: h.MaxEntries}
		p.maps.note(&m)
	}
	if m.Value != 0 {
		p.keepBTF(m.BTF)
	}
}

// keepBTF adds the BTF with an id, 0 for none, to the spool.
func (p *programs) keepBTF(id uint32) {
	if id == 0 || p.btfs[id] {
		return
	}
	p.btfs[id] = true
	blob, err := p.source.BTF(id)
	if err != nil {
		p.s.lost("BTF of BPF programs: "+sys.Reason(err), 1)
		return
	}
	p.addBTF(id, blob)
}

func (p *programs) addBTF(id uint32, blob []byte) {
	p.btfs[id] = true
	p.entry = bpf.AppendBTF(p.entry[:0], id, blob)
	p.fail(p.blobs.add(id, p.entry))
}

func (p *programs) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// fdRights returns the reason why no program can be opened by id.
func fdRights() error {
	id, err := sys.NextProgram(0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	fd, err := sys.OpenProgram(id)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, os.ErrPermission):
		return err
	}
	return nil // unloaded meanwhile
}

// finish adds entries for programs that were not read though they were not unloaded, with the
// reason, and fills the summary.
func (p *programs) finish() {
	sum := p.s.summary
	p.missingFrom = len(sum.Missing)
	for _, id := range slices.Sorted(maps.Keys(p.seen)) {
		x := p.seen[id]
		sum.Programs++
		if x.image {
			sum.Images++
		}
		if x.missing == bpf.MissingRights {
			p.fail(p.infos.add(id, unreadable(id, x.tag)))
		}
		if x.missing != "" {
			p.s.lost("images of BPF programs: "+x.missing, 1)
		}
		if x.missing != "" && len(sum.Missing) < maxMissing {
			sum.Missing = append(sum.Missing, MissingProgram{ID: id, Symbol: x.symbol,
				Reason: x.missing})
		}
	}
	sum.BTFs += len(p.blobs.entries)
	sum.Bytes += p.infos.size + p.blobs.size
}

// unreadable is the entry of a program that cannot be read: as in the kernel's info for a process
// without rights, all lengths are 0.
func unreadable(id uint32, tag bpf.Tag) []byte {
	info := make([]byte, bpf.InfoLen)
	binary.NativeEndian.PutUint32(info[bpf.InfoIDAt:], id)
	copy(info[bpf.InfoTagAt:], tag[:])
	return bpf.AppendProgram(nil, &bpf.RawProgram{Info: info, BigEndian: bigEndian})
}

// synthesize writes the records that loads would have given: with time 0, before everything, for
// programs that were loaded before the rings were open; with their times for programs found after
// records were lost. It also counts the functions of all programs.
func (p *programs) synthesize(w *perfdata.Writer, ksymbols *int) error {
	p.infos.sort()
	p.blobs.sort()
	var entry, blob []byte
	for _, e := range p.infos.entries {
		var err error
		if entry, err = p.infos.read(e, entry); err != nil {
			return err
		}
		x, err := p.decode(entry, &blob)
		if err != nil {
			p.s.warn("BPF program %d: %v", e.id, err)
			continue
		}
		p.s.summary.Functions += len(x.Funcs)
		p.describe(x)
		seen := p.seen[e.id]
		if seen == nil || seen.missing != "" {
			continue
		}
		if !seen.loaded && !seen.late {
			*ksymbols += writeProgram(w, x, 0)
		}
		for _, at := range seen.presentAt {
			*ksymbols += writeProgram(w, x, at)
		}
	}
	missing := p.s.summary.Missing[p.missingFrom:]
	for i := range missing {
		m := &missing[i]
		if seen := p.seen[m.ID]; m.Symbol == "" && seen != nil && seen.tag != (bpf.Tag{}) {
			m.Symbol = bpf.SymbolOf(seen.tag, "")
		}
	}
	sortMissing(missing)
	return w.Err()
}

func sortMissing(list []MissingProgram) {
	slices.SortFunc(list, func(a, b MissingProgram) int { return cmp.Compare(a.ID, b.ID) })
}

// describe adds a program without code, but with info, to the missing ones.
func (p *programs) describe(x *bpf.Program) {
	seen, sum := p.seen[x.ID], p.s.summary
	if x.Missing == "" || seen == nil || seen.missing != "" {
		return
	}
	p.s.lost("images of BPF programs: "+x.Missing, 1)
	if len(sum.Missing) < maxMissing {
		sum.Missing = append(sum.Missing, MissingProgram{ID: x.ID, Symbol: x.Symbol(0),
			Reason: x.Missing})
	}
}

// writeProgram writes the records of a load at a time and returns the number of KSYMBOL records. A
// function with a hidden address has none.
func writeProgram(w *perfdata.Writer, x *bpf.Program, at uint64) int {
	n, id := 0, perfdata.SampleID{Time: at}
	for i := range x.Funcs {
		f := &x.Funcs[i]
		if f.Start == 0 {
			continue
		}
		n++
		_ = w.WriteKSymbol(&perfdata.KSymbol{Addr: uint64(f.Start), Len: f.Length,
			Kind: perfdata.KSymbolBPF, Name: []byte(x.Symbol(i))}, id)
	}
	_ = w.WriteBPFEvent(&perfdata.BPFEvent{Kind: perfdata.BPFLoad, ID: x.ID, Tag: x.Tag}, id)
	return n
}

// decode decodes an entry of BPF_PROG_INFO and its BTF, which names the functions. blob is a
// reusable buffer.
func (p *programs) decode(entry []byte, blob *[]byte) (*bpf.Program, error) {
	var unread error
	x, err := bpf.DecodeProgram("bpf_prog_info", entry, bigEndian, func(id uint32) *btf.Types {
		e, ok := p.blobs.find(id)
		if !ok {
			return nil
		}
		b, err := p.blobs.read(e, *blob)
		*blob = b
		if err != nil {
			unread = err
			return nil
		}
		const head = 8 // id and size
		t, err := btf.Parse(fmt.Sprintf("BTF %d", id), b[head:], nil)
		if err != nil {
			return nil
		}
		return t
	})
	if err = cmp.Or(err, unread); err != nil {
		return nil, err
	}
	return x, nil
}

// spool stores data by id in a temporary file; memory holds 16 bytes per entry. Not safe for
// concurrent use.
type spool struct {
	file    *os.File
	buf     *bufio.Writer
	size    int64
	entries []spooled
	sorted  bool
}

type spooled struct {
	id  uint32
	len uint32
	at  int64
}

// tempPattern is the pattern of the names of temporary files.
const tempPattern = "symbolize-capture-*"

func newSpool() (*spool, error) {
	f, err := files.Temp(tempPattern)
	if err != nil {
		return nil, err
	}
	return &spool{file: f, buf: bufio.NewWriterSize(f, 1<<18)}, nil
}

func (s *spool) close() { s.file.Close() }

// add stores b under an id.
func (s *spool) add(id uint32, b []byte) error {
	if _, err := s.buf.Write(b); err != nil {
		return err
	}
	s.entries = append(s.entries, spooled{id: id, len: uint32(len(b)), at: s.size})
	s.size += int64(len(b))
	s.sorted = false
	return nil
}

// reset removes all entries.
func (s *spool) reset() error {
	s.buf.Reset(s.file)
	s.entries, s.size, s.sorted = s.entries[:0], 0, false
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return err
}

// sort sorts the entries by id, and drops all but one entry of an id.
func (s *spool) sort() {
	if s.sorted {
		return
	}
	slices.SortStableFunc(s.entries, func(a, b spooled) int { return cmp.Compare(a.id, b.id) })
	s.entries = slices.CompactFunc(s.entries, func(a, b spooled) bool { return a.id == b.id })
	s.sorted = true
}

// read returns the data of an entry, in buf if it is large enough.
func (s *spool) read(e spooled, buf []byte) ([]byte, error) {
	if err := s.buf.Flush(); err != nil {
		return nil, err
	}
	buf = slices.Grow(buf[:0], int(e.len))[:e.len]
	_, err := s.file.ReadAt(buf, e.at)
	return buf, err
}

// section returns a reader of a feature's bytes: the number of entries, then all entries by id.
func (s *spool) section() io.Reader {
	s.sort()
	return &sectionReader{s: s, buf: binary.NativeEndian.AppendUint32(nil, uint32(len(s.entries)))}
}

// sectionReader reads the entries of a spool in order.
type sectionReader struct {
	s       *spool
	next    int
	buf     []byte // rest of the current entry
	scratch []byte
}

func (r *sectionReader) Read(b []byte) (int, error) {
	for len(r.buf) == 0 {
		if r.next == len(r.s.entries) {
			return 0, io.EOF
		}
		var err error
		if r.scratch, err = r.s.read(r.s.entries[r.next], r.scratch); err != nil {
			return 0, err
		}
		r.buf = r.scratch
		r.next++
	}
	n := copy(b, r.buf)
	r.buf = r.buf[n:]
	return n, nil
}

// find returns the entry of an id. The spool must be sorted.
func (s *spool) find(id uint32) (spooled, bool) {
	i, ok := slices.BinarySearchFunc(s.entries, id, func(e spooled, id uint32) int {
		return cmp.Compare(e.id, id)
	})
	if !ok {
		return spooled{}, false
	}
	return s.entries[i], true
}

// bigEndian reports the byte order of the host, in which the kernel writes records and info.
var bigEndian = perfdata.NativeBigEndian()

// entryBTF returns the BTF id of an entry of BPF_PROG_INFO, 0 if it has none: u32 info_len, u32
// data_len, u64 arrays, then the info.
func entryBTF(entry []byte) uint32 {
	const infoAt = 16
	if len(entry) < infoAt+bpf.InfoBTFAt+4 {
		return 0
	}
	return binary.NativeEndian.Uint32(entry[infoAt+bpf.InfoBTFAt:])
}
