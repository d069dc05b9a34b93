package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/btf"
)

// maxFuncs bounds the functions of a program; the kernel allows 256 (BPF_MAX_SUBPROGS).
const maxFuncs = 4096

// Offsets in struct bpf_prog_info (include/uapi/linux/bpf.h).
const (
	typeAt          = 0
	jitedLenAt      = 16
	xlatedLenAt     = 20
	loadTimeAt      = 40
	uidAt           = 48
	nameAt          = 64
	nameLen         = 16
	runTimeAt       = 192
	runCountAt      = 200
	verifiedInsnsAt = 216
)

// The arrays of an entry, by their bits (enum perf_bpil_array_types in
// tools/perf/util/bpf-utils.h).
const (
	ArrayJITedInsns = iota
	ArrayXlatedInsns
	ArrayMapIDs
	ArrayJITedKSyms
	ArrayJITedFuncLens
	ArrayFuncInfo
	ArrayLineInfo
	ArrayJITedLineInfo
	ArrayProgTags
	NumArrays
)

// ArrayFields locates the fields of struct bpf_prog_info that describe an array.
type ArrayFields struct {
	name    string
	Pointer int // offset of the pointer
	Count   int // offset of the number of records, or of bytes where Size is 1
	Size    int // of a record, bytes; the least one where RecSize is not 0
	RecSize int // offset of the field with the true size of a record, or 0
}

// Arrays are the fields of each array, by the Array constants.
var Arrays = [NumArrays]ArrayFields{
	ArrayJITedInsns:    {"jited_prog_insns", 24, 16, 1, 0},
	ArrayXlatedInsns:   {"xlated_prog_insns", 32, 20, 1, 0},
	ArrayMapIDs:        {"map_ids", 56, 52, 4, 0},
	ArrayJITedKSyms:    {"jited_ksyms", 112, 104, 8, 0},
	ArrayJITedFuncLens: {"jited_func_lens", 120, 108, 4, 0},
	ArrayFuncInfo:      {"func_info", 136, 144, 8, 132},
	ArrayLineInfo:      {"line_info", 152, 148, 16, 172},
	ArrayJITedLineInfo: {"jited_line_info", 160, 168, 8, 176},
	ArrayProgTags:      {"prog_tags", 184, 180, 8, 0},
}

// array is an array of an entry: n records of size bytes each, no two apart.
type array struct {
	b    []byte
	n    int
	size int
}

func (a *array) at(i int) []byte { return a.b[i*a.size : (i+1)*a.size] }

// entry is the state for decoding one program.
type entry struct {
	name   string // of the section, for errors
	base   int64  // of the entry's data in the file
	info   [InfoLen]byte
	data   []byte
	mask   uint64 // of arrays
	big    bool
	arrays [NumArrays]array
	hidden [NumArrays]bool // hidden by the kernel
	errs   []error
	btf    *btf.Types
}

func (e *entry) u32(at int) uint32 { return decode.U32(e.info[at:], e.big) }
func (e *entry) u64(at int) uint64 { return decode.U64(e.info[at:], e.big) }

// fail notes damage at an offset in the entry's data.
func (e *entry) fail(at int64, format string, args ...any) {
	e.errs = append(e.errs, e.error(at, format, args...))
}

// error makes an error about an offset in the entry's data.
func (e *entry) error(at int64, format string, args ...any) error {
	return &decode.Error{Name: fmt.Sprintf("%s: program %d", e.name, e.u32(InfoIDAt)),
		Offset: e.base + at, Reason: fmt.Sprintf(format, args...)}
}

// findArrays checks the positions of the arrays in the mask.
func (e *entry) findArrays() {
	for i := range Arrays {
		d := &Arrays[i]
		if e.mask>>i&1 == 0 {
			continue
		}
		n, size, at := uint64(e.u32(d.Count)), d.Size, e.u64(d.Pointer)
		if d.RecSize != 0 && n > 0 {
			size = int(min(e.u32(d.RecSize), math.MaxInt32))
		}
		switch {
		case n == 0:
			continue
		case size < d.Size:
			e.fail(0, "%s: records of %d bytes, %d is the least", d.name, size, d.Size)
		case at == 0 && i != e.firstArray(), at>>63 != 0:
			// The kernel zeroed the pointer; perf subtracted its buffer's address from that.
			e.hidden[i] = true
		case at > uint64(len(e.data)) || n*uint64(size) > uint64(len(e.data))-at:
			e.fail(0, "%s: %d records of %d bytes at %#x lie outside the data of %d bytes",
				d.name, n, size, at, len(e.data))
		default:
			end := at + n*uint64(size)
			e.arrays[i] = array{b: e.data[at:end:end], n: int(n), size: size}
		}
	}
}

// firstArray is the array that is at offset 0 of the data: the one with the lowest bit that is
// not empty.
func (e *entry) firstArray() int {
	for i := range Arrays {
		if e.mask>>i&1 != 0 && e.u32(Arrays[i].Count) != 0 {
			return i
		}
	}
	return -1
}

// program makes a Program of the entry.
func (e *entry) program(types func(id uint32) *btf.Types) Program {
	e.findArrays()
	name, _, _ := bytes.Cut(e.info[nameAt:nameAt+nameLen], []byte{0})
	p := Program{
		Type: e.u32(typeAt), ID: e.u32(InfoIDAt), Tag: Tag(e.info[InfoTagAt : InfoTagAt+8]),
		JITedLen: e.u32(jitedLenAt), XlatedLen: e.u32(xlatedLenAt),
		LoadTime: e.u64(loadTimeAt), UID: e.u32(uidAt),
		Name:  string(name),
		BTFID: e.u32(InfoBTFAt), RunTime: e.u64(runTimeAt), RunCount: e.u64(runCountAt),
		VerifiedInsns: e.u32(verifiedInsnsAt), BigEndian: e.big,
	}
	if p.BTFID != 0 {
		p.BTF = types(p.BTFID)
	}
	e.btf = p.BTF
	e.funcs(&p)
	e.images(&p)
	e.lines(&p)
	p.Err = errors.Join(e.errs...)
	return p
}

// funcs makes the functions with their names, tags and addresses.
func (e *entry) funcs(p *Program) {
	syms, lens := &e.arrays[ArrayJITedKSyms], &e.arrays[ArrayJITedFuncLens]
	tags, infos := &e.arrays[ArrayProgTags], &e.arrays[ArrayFuncInfo]
	n := max(1, syms.n, lens.n, tags.n)
	if n == 1 { // the only source for the number
		n = max(n, infos.n)
	}
	if n > maxFuncs {
		e.fail(0, "%d functions, over the limit of %d", n, maxFuncs)
		n = maxFuncs
	}
	p.Funcs = make([]Func, n)
	for i := range p.Funcs {
		f := &p.Funcs[i]
		f.Tag = p.Tag
		if i < tags.n {
			f.Tag = Tag(tags.at(i))
		}
		if i < syms.n {
			f.Start = addr.PC(decode.U64(syms.at(i), e.big))
		}
		if i < lens.n {
			f.Length = decode.U32(lens.at(i), e.big)
		} else if n == 1 {
			f.Length = p.JITedLen
		}
		switch {
		case e.btfName(f, infos, i):
		case i == 0:
			f.Name = p.Name
		default:
			f.Name = subprogName
		}
	}
}

// btfName names function i by its BTF type, if it has one.
func (e *entry) btfName(f *Func, infos *array, i int) bool {
	const typeIDAt = 4 // in struct bpf_func_info
	if e.btf == nil || i >= infos.n {
		return false
	}
	id := btf.ID(decode.U32(infos.at(i)[typeIDAt:], e.big))
	if id == 0 || int64(id) >= int64(e.btf.Len()) || e.btf.Kind(id) != btf.KindFunc {
		e.fail(0, "func_info: record %d names type %d, which is not a function of the BTF", i, id)
		return false
	}
	f.Name, f.Type = e.btf.Name(id), id
	return f.Name != ""
}

// images sets the functions' code, or the program's reason for its absence.
func (e *entry) images(p *Program) {
	p.Missing = e.missing(p)
	code := e.arrays[ArrayJITedInsns].b
	for i := range p.Funcs {
		f := &p.Funcs[i]
		switch n := uint64(f.Length); {
		case len(code) == 0 && p.Missing != "" || n == 0:
		case n > uint64(len(code)):
			e.fail(0, "jited_func_lens: function %d of %d bytes ends behind the code", i, n)
			code = nil
		default:
			f.Image, code = code[:n:n], code[n:]
		}
	}
	if p.Missing == "" && p.Funcs[0].Image == nil {
		p.Missing = e.withoutLengths()
	}
}

// withoutLengths returns the reason why existing code cannot be divided.
func (e *entry) withoutLengths() string {
	switch {
	case e.hidden[ArrayJITedFuncLens]:
		return MissingHidden
	case e.mask>>ArrayJITedFuncLens&1 == 0:
		return MissingNotRecorded
	}
	return MissingDamaged
}

// missing returns the reason why there is no code, or "".
func (e *entry) missing(p *Program) string {
	const bit = 1 << ArrayJITedInsns
	switch {
	case e.arrays[ArrayJITedInsns].n > 0:
		return ""
	case p.JITedLen == 0 && p.XlatedLen == 0: // no program is empty
		return MissingRights
	case p.JITedLen == 0:
		return MissingNotJITed
	case e.hidden[ArrayJITedInsns]:
		return MissingHidden
	case e.mask&bit != 0:
		return MissingDamaged
	case e.arrays[ArrayJITedKSyms].n == 0:
		return MissingHidden
	}
	return MissingNotRecorded
}
