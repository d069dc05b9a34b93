package perfdata

import (
	"symbolize/ingest/decode"
)

// FileSymbols are the functions that simpleperf noted of an ELF file: those that samples were in,
// or all. Addresses are those of its program headers; Offset is that of the byte in the file that
// lies at Addr, the first address of its code.
type FileSymbols struct {
	Path    string
	Addr    uint64
	Offset  uint64
	Symbols []FileSymbol // as in the file
}

// FileSymbol is a function of a file.
type FileSymbol struct {
	Addr uint64
	Size uint32
	Name string
}

// simpleperfELF is the type of ELF files among DsoType of simpleperf (dso.h); the others are
// kernels, modules, and code of Android's runtime, which have other addresses.
const simpleperfELF = 2

// FileSymbols reads simpleperf's FILE and FILE2 features (record_file_format.h,
// record_file.proto). Files without an offset, as old versions wrote them, are left out. With an
// error come those before the damage.
func (f *File) FileSymbols() (list []FileSymbols, err error) {
	for _, form := range []struct {
		feature Feature
		read    func(*decode.Reader) (FileSymbols, bool)
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
			file, ok := form.read(r)
			if r.Err() != nil {
				return list, r.Err()
			}
			if ok {
				list = append(list, file)
			}
		}
	}
	return list, nil
}

// fileSymbols reads a file of the FILE feature; ok is false for one that is left out.
func fileSymbols(r *decode.Reader) (file FileSymbols, ok bool) {
	file.Path = r.CString()
	kind := r.U32()
	file.Addr = r.U64()
	n := r.U32()
	const least = 8 + 4 + 1 // bytes of a symbol
	if r.Err() == nil && uint64(n) > uint64(r.Left())/least {
		r.Fail("%d symbols in %d bytes", n, r.Left())
	}
	for range n {
		s := FileSymbol{Addr: r.U64(), Size: r.U32(), Name: r.CString()}
		if r.Err() != nil {
			return file, false
		}
		file.Symbols = append(file.Symbols, s)
	}
	if kind != simpleperfELF || r.Err() != nil || r.Left() == 0 {
		return file, false
	}
	file.Offset = r.U64()
	return file, r.Err() == nil
}

// protoFile reads a FileFeature message.
func protoFile(r *decode.Reader) (file FileSymbols, ok bool) {
	kind, placed := uint64(0), false
	message(r, func(field, value uint64, body *decode.Reader) {
		switch field {
		case 1:
			file.Path = string(body.Bytes(uint64(body.Left())))
		case 2:
			kind = value
		case 3:
			file.Addr = value
		case 4:
			var s FileSymbol
			message(body, func(field, value uint64, body *decode.Reader) {
				switch field {
				case 1:
					s.Addr = value
				case 2:
					s.Size = uint32(value)
				case 3:
					s.Name = string(body.Bytes(uint64(body.Left())))
				}
			})
			file.Symbols = append(file.Symbols, s)
		case 6: // ElfFile
			placed = true
			message(body, func(field, value uint64, _ *decode.Reader) {
				if field == 1 {
					file.Offset = value
				}
			})
		}
	})
	return file, kind == simpleperfELF && placed && r.Err() == nil
}

// Wire types of protocol buffers (protobuf.dev/programming-guides/encoding).
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// message visits the fields of a message: its number with its value or, of texts and messages, a
// reader of its bytes; of other fields that is empty. Its damage is r's.
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
