package bpf

import (
	"errors"
	"fmt"

	"symbolize/ingest/decode"
	"symbolize/ingest/object/btf"
)

const (
	// maxProgramErrs bounds the damaged entries in one section's error.
	maxProgramErrs = 20
	// maxSectionFuncs bounds the functions of all programs of a section. An entry can be
	// 16 bytes and a function 4, but take 264 and 88 in memory.
	maxSectionFuncs = 1 << 18
	// maxSectionBTFs bounds the BTF blobs of a section; a blob can be as small as 32 bytes.
	maxSectionBTFs = 1 << 16
)

// DecodePrograms decodes the section of the feature BPF_PROG_INFO, which is at offset base of the
// file name. btfs are by ID, as DecodeBTFs returns them. Programs are in the order of the section;
// they alias it. The error is about the chain of entries, and comes with the programs before it;
// damage inside an entry is in its Err.
func DecodePrograms(name string, section []byte, base int64, bigEndian bool,
	btfs map[uint32]*btf.Types) ([]Program, error) {
	r := decode.New(name, section, base, bigEndian)
	n := r.U32()
	var out []Program
	funcs := 0
	for i := uint32(0); i < n && r.Err() == nil; i++ {
		if funcs >= maxSectionFuncs {
			r.Fail("over the limit of %d functions of programs", maxSectionFuncs)
			break
		}
		start := len(section) - r.Left()
		e := readEntry(r, name, bigEndian)
		if r.Err() != nil {
			break
		}
		p := e.program(func(id uint32) *btf.Types { return btfs[id] })
		p.Raw = section[start : len(section)-r.Left() : len(section)-r.Left()]
		out = append(out, p)
		funcs += len(p.Funcs)
	}
	if err := r.Err(); err != nil {
		return out, fmt.Errorf("%d of %d programs: %w", len(out), n, err)
	}
	return out, nil
}

// readEntry reads the parts of an entry. They are whole where r has no error.
func readEntry(r *decode.Reader, name string, bigEndian bool) entry {
	infoLen, dataLen := r.U32(), r.U32()
	e := entry{name: name, mask: r.U64(), big: bigEndian}
	info := r.Bytes(uint64(infoLen))
	e.base = r.Offset()
	e.data = r.Bytes(uint64(dataLen))
	copy(e.info[:], info)
	return e
}

// DecodeProgram decodes one entry of the feature BPF_PROG_INFO, as Program.Raw has it, which
// the Program aliases. types returns the BTF of an ID, nil if there is none. An error means
// that nothing of the entry can be read; damage inside it is in the Program's Err.
func DecodeProgram(name string, raw []byte, bigEndian bool,
	types func(id uint32) *btf.Types) (*Program, error) {
	r := decode.New(name, raw, 0, bigEndian)
	e := readEntry(r, name, bigEndian)
	if err := r.Err(); err != nil {
		return nil, err
	}
	p := e.program(types)
	p.Raw = raw[: len(raw)-r.Left() : len(raw)-r.Left()]
	return &p, nil
}

// DecodeBTFs decodes the section of the feature BPF_BTF, which is at offset base of the file
// name, into the BTF blobs by their IDs; they alias it. A damaged blob is left out and reported in
// the error, the others are returned.
func DecodeBTFs(name string, section []byte, base int64, bigEndian bool,
) (map[uint32]*btf.Types, error) {
	r := decode.New(name, section, base, bigEndian)
	n := r.U32()
	out := make(map[uint32]*btf.Types)
	var errs []error
	for i := uint32(0); i < n && r.Err() == nil; i++ {
		if i >= maxSectionBTFs {
			r.Fail("over the limit of %d BTF blobs", maxSectionBTFs)
			break
		}
		id, size := r.U32(), r.U32()
		at := r.Offset()
		blob := r.Bytes(uint64(size))
		if r.Err() != nil {
			break
		}
		t, err := btf.Parse(fmt.Sprintf("%s: BTF %d at %#x", name, id, at), blob, nil)
		if err != nil {
			if len(errs) < maxProgramErrs {
				errs = append(errs, err)
			}
			continue
		}
		out[id] = t
	}
	if err := r.Err(); err != nil {
		errs = append(errs, fmt.Errorf("%d of %d BTF blobs: %w", len(out), n, err))
	}
	return out, errors.Join(errs...)
}
