package record

import (
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/record/sys"
)

// maxPrograms bounds the programs that one capture distinguishes; 32 bytes are kept of
// each. Beyond it programs are counted only.
const maxPrograms = 1 << 20

// programSource is where programs are read from: the kernel.
type programSource interface {
	// Open returns a descriptor, which keeps the program loaded until it is closed.
	Open(id uint32) (fd int, err error)
	Close(fd int)
	// Program and BTF return the kernel's record of a program, and the BTF of an id;
	// both are valid until the next call.
	Program(fd int) (*bpf.RawProgram, error)
	BTF(id uint32) ([]byte, error)
}

// runningKernel is the programSource of a recording.
type runningKernel struct{ sys.ProgramReader }

func (*runningKernel) Open(id uint32) (int, error) { return sys.OpenProgram(id) }

func (*runningKernel) Close(fd int) { unix.Close(fd) }

// programs takes in BPF programs. It is for one goroutine.
type programs struct {
	s      *session
	source programSource
	infos  *spool // entries of BPF_PROG_INFO
	blobs  *spool // entries of BPF_BTF
	seen   map[uint32]*program
	btfs   map[uint32]bool // in blobs, or known not to be had
	entry  []byte
	err    error // of the spools: the disk is full

	missingFrom int                               // in Summary.Missing, of those that finish has added
	written     map[uint32]bool                   // programs that present passes over
	found       func(start uint64, length uint32) // called with functions that are read
}

// program is the entry of one in memory.
type program struct {
	tag     bpf.Tag
	loaded  bool     // while we recorded: it has KSYMBOL records
	image   bool     // its code was read
	late    bool     // it was read after records were lost: it was not there before all
	again   []uint64 // when it was there after records were lost
	waited  bool     // missing, but the kernel's copy may come in time for the next part
	missing string   // why nothing was read; "" if its info was
	symbol  string   // of missing ones, from the records
}

func newPrograms(s *session) (*programs, error) {
	p := &programs{s: s, source: new(runningKernel), seen: make(map[uint32]*program),
		btfs: make(map[uint32]bool)}
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

// maxBTFs is how many BTF ids are remembered from one part to the next.
const maxBTFs = 1 << 12

// cut returns the programs read since the last cut, and forgets them. With copies, programs that
// are missing stay for one part more: their copy may be on its way.
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

// load reads a program that was loaded by a record. It returns nil for those beyond the bound.
func (p *programs) load(id uint32, tag bpf.Tag) *program {
	x := p.seen[id]
	if x == nil { // else it was read as one of those that were there
		x = p.read(id)
	}
	if x != nil {
		x.tag, x.loaded = tag, true
	}
	return x
}

// present reads a program that was there before.
func (p *programs) present(id uint32) {
	if p.seen[id] == nil && !p.written[id] {
		p.read(id)
	}
}

// presentAgain reads a program that was there at a time after records were lost, of which a record
// is written, and calls found with its functions.
func (p *programs) presentAgain(id uint32, at uint64, found func(start uint64, length uint32)) {
	x := p.seen[id]
	if x == nil {
		if x = p.read(id); x == nil {
			return
		}
		x.late = true
	}
	fd, err := p.source.Open(id)
	if err != nil {
		return // gone
	}
	defer p.source.Close(fd)
	if raw, err := p.source.Program(fd); err == nil {
		x.again = append(x.again, at)
		functionsOf(raw, found)
	}
}

// functionsOf calls found with where the functions of a program lie.
func functionsOf(raw *bpf.RawProgram, found func(start uint64, length uint32)) {
	starts, lengths := raw.Arrays[bpf.ArrayJITedKSyms], raw.Arrays[bpf.ArrayJITedFuncLens]
	for o := binary.NativeEndian; len(starts) >= 8 && len(lengths) >= 4; {
		found(o.Uint64(starts), o.Uint32(lengths))
		starts, lengths = starts[8:], lengths[4:]
	}
}

// read reads a program: its descriptor first, which keeps it there, and is closed when the last
// byte was copied.
func (p *programs) read(id uint32) *program {
	fd, err := p.source.Open(id)
	if len(p.seen) >= maxPrograms {
		if err == nil {
			p.source.Close(fd)
		}
		p.s.lost("BPF programs beyond the bound", 1)
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

// keep puts a program and its BTF into the spools.
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
	if len(raw.Info) < bpf.InfoBTFAt+4 {
		return
	}
	btf := binary.NativeEndian.Uint32(raw.Info[bpf.InfoBTFAt:])
	if btf == 0 || p.btfs[btf] {
		return
	}
	p.btfs[btf] = true
	blob, err := p.source.BTF(btf)
	if err != nil {
		p.s.lost("BTF of BPF programs: "+sys.Reason(err), 1)
		return
	}
	p.addBTF(btf, blob)
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

// fdRights is called where no program can be had by its id: it finds the reason.
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
	return nil // gone meanwhile
}

// finish gives the programs that could not be read for another reason than that they
// were gone an entry with that reason, and fills the summary.
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

// unreadable is the entry of a program that exists and may not be read: as the kernel
// fills its info for those who may not, all lengths 0.
func unreadable(id uint32, tag bpf.Tag) []byte {
	info := make([]byte, bpf.InfoLen)
	binary.NativeEndian.PutUint32(info[bpf.InfoIDAt:], id)
	copy(info[bpf.InfoTagAt:], tag[:])
	return bpf.AppendProgram(nil, &bpf.RawProgram{Info: info, BigEndian: bigEndian})
}
