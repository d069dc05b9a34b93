package perfdata

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"symbolize/ingest/decode"
)

// decodeSimpleperf decodes simpleperf's META_INFO feature: keys and values, each terminated by a
// NUL (RecordFileReader::ReadMetaInfoFeature in record_file_reader.cpp).
func decodeSimpleperf(x *Features, d *decode.Reader) {
	facts := make(map[string]string)
	for d.Left() > 0 && d.Err() == nil {
		key := d.CString()
		if value := d.CString(); d.Err() == nil {
			facts[key] = value
		}
	}
	x.Simpleperf = facts
	if version := facts["simpleperf_version"]; version != "" {
		x.Version = cmp.Or(x.Version, "simpleperf "+version)
	}
	x.OSRelease = cmp.Or(x.OSRelease, facts["kernel_version"])
}

// simpleperfTypes reads simpleperf's names of tracepoints: lines "sched:sched_switch,2,91", with
// the type and the config of the attr.
func (f *File) simpleperfTypes() {
	for line := range strings.Lines(f.Features.Simpleperf["event_type_info"]) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ',')
		config, err := strconv.ParseUint(line[at+1:], 10, 64)
		name, ok := strings.CutSuffix(line[:max(at, 0)], ","+strconv.Itoa(int(AttrTracepoint)))
		if err != nil || !ok || name == "" {
			continue
		}
		if f.types[config] == "" {
			f.types[config] = name
		}
	}
}

// FileKind is the kind of a file with functions listed by simpleperf: DsoType in its dso.h.
type FileKind uint32

// The kinds of files, and what the addresses of their functions are.
const (
	FileKernel       FileKind = 0 // run-time addresses, also of modules
	FileKernelModule FileKind = 1
	FileELF          FileKind = 2 // virtual addresses; of compiled code run-time addresses
	FileDEX          FileKind = 3 // offsets in the file
	FileSymbolMap    FileKind = 4 // run-time addresses in the process of /tmp/perf-PID.map
)

// FileSymbols are the functions of a file listed by simpleperf: all, or those with samples.
type FileSymbols struct {
	Kind FileKind
	Path string
	// Addr is the first address of an ELF file's code; Offset, if Placed, is its offset in the
	// file, which old versions of simpleperf did not write.
	Addr    uint64
	Offset  uint64
	Placed  bool
	Symbols []FileSymbol // as in the file
}

// FileSymbol is a function of a file.
type FileSymbol struct {
	Addr uint64
	Size uint32
	Name string
}

// Compiled reports whether simpleperf keeps in this file the symbols of code compiled by Android's
// runtime (JITDebugReader.cpp): it was mapped over that code.
func (f *FileSymbols) Compiled() bool {
	base := f.Path[strings.LastIndexByte(f.Path, '/')+1:]
	return strings.Contains(base, "_jit_app_cache:") || strings.Contains(base, "_jit_zygote_cache:") ||
		strings.HasPrefix(base, "TemporaryFile-")
}

// FileSymbols reads simpleperf's FILE and FILE2 features (record_file_format.h,
// record_file.proto). Files without functions are left out. With an error it returns the files
// before the damage.
func (f *File) FileSymbols() (list []FileSymbols, err error) {
	for _, form := range []struct {
		feature Feature
		read    func(*decode.Reader) FileSymbols
	}{{featureSimpleperfFile, fileSymbols}, {featureSimpleperfFile2, protoFile}} {
		sec, ok := f.Features.Sections[form.feature]
		if !ok {
			continue
		}
		b, err := f.read(sec, maxFeatureBytes)
		if err != nil {
			return list, err
		}
		d := decode.New(f.Name+": "+form.feature.String()+" feature", b, sec.Offset, f.BigEndian)
		for d.Left() > 0 {
			at := d.Offset() + 4
			body := d.Bytes(uint64(d.U32()))
			if d.Err() != nil {
				return list, d.Err()
			}
			r := decode.New(f.Name+": "+form.feature.String()+" feature", body, at, f.BigEndian)
			file := form.read(r)
			if r.Err() != nil {
				return list, r.Err()
			}
			if len(file.Symbols) > 0 {
				list = append(list, file)
			}
		}
	}
	return list, nil
}

// fileSymbols reads a file of the FILE feature.
func fileSymbols(r *decode.Reader) (file FileSymbols) {
	file.Path = r.CString()
	file.Kind = FileKind(r.U32())
	file.Addr = r.U64()
	n := r.U32()
	const least = 8 + 4 + 1 // bytes of a symbol
	if r.Err() == nil && uint64(n) > uint64(r.Left())/least {
		r.Fail("%d symbols in %d bytes", n, r.Left())
	}
	for range n {
		s := FileSymbol{Addr: r.U64(), Size: r.U32(), Name: r.CString()}
		if r.Err() != nil {
			return file
		}
		file.Symbols = append(file.Symbols, s)
	}
	if (file.Kind == FileELF || file.Kind == FileKernelModule) && r.Err() == nil && r.Left() > 0 {
		file.Offset, file.Placed = r.U64(), true
	}
	return file
}

// protoFile reads a FileFeature message.
func protoFile(r *decode.Reader) (file FileSymbols) {
	message(r, func(field, value uint64, body *decode.Reader) {
		switch field {
		case 1:
			file.Path = string(body.Bytes(uint64(body.Left())))
		case 2:
			file.Kind = FileKind(min(value, math.MaxUint32))
		case 3:
			file.Addr = value
		case 4:
			file.Symbols = append(file.Symbols, protoSymbol(body))
		case 6, 7: // ElfFile, KernelModule
			file.Placed = true
			message(body, func(field, value uint64, _ *decode.Reader) {
				if field == 1 {
					file.Offset = value
				}
			})
		}
	})
	return file
}

func protoSymbol(r *decode.Reader) (s FileSymbol) {
	message(r, func(field, value uint64, body *decode.Reader) {
		switch field {
		case 1:
			s.Addr = value
		case 2:
			s.Size = uint32(min(value, math.MaxUint32))
		case 3:
			s.Name = string(body.Bytes(uint64(body.Left())))
		}
	})
	return s
}

// Wire types of protocol buffers (protobuf.dev/programming-guides/encoding).
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// message visits the fields of a message: the number with the value or, for texts and messages, a
// reader of the bytes, which is empty for other fields. Damage in the bytes is damage of r.
func message(r *decode.Reader, visit func(field, value uint64, body *decode.Reader)) {
	for r.Left() > 0 && r.Err() == nil {
		tag := r.Uvarint()
		value, at, body := uint64(0), r.Offset(), []byte(nil)
		switch tag & 7 {
		case wireVarint:
			value = r.Uvarint()
		case wire64:
			r.Skip(8)
		case wireBytes:
			n := r.Uvarint()
			at, body = r.Offset(), r.Bytes(n)
		case wire32:
			r.Skip(4)
		default:
			r.Fail("field of wire type %d", tag&7)
		}
		if r.Err() != nil {
			return
		}
		inner := decode.New("", body, at, r.BigEndian())
		if visit(tag>>3, value, inner); inner.Err() != nil {
			r.Fail("field %d is damaged", tag>>3)
		}
	}
}
