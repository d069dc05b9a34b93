package btf

import (
	"errors"
	"fmt"
	"io"

	"symbolize/ingest/files"
	"symbolize/ingest/object/elf"
)

// Errors of ReadFile, wrapped with the file's name.
var (
	ErrNoFile    = errors.New("neither an ELF file nor BTF")
	ErrNoSection = errors.New("an ELF file that has no BTF")
)

// ReadFile reads the types of a BTF file, or of the section .BTF of an ELF file, which can be
// packed as kernel modules are. base is their base blob; nil is none, or the ELF file's own
// (.BTF.base). .BTF.ext is not read. Other files are ErrNoFile, ELF files without .BTF
// ErrNoSection.
func ReadFile(path string, base *Types) (*Types, error) {
	f, err := files.Open(path)
	if errors.Is(err, files.ErrNotRegular) {
		return nil, fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	packed := files.UnpackHead(f, fi.Size())
	if len(packed) > 0 && !elf.IsELF(packed) && !isBTF(packed) {
		return nil, fmt.Errorf("%s: %w", path, ErrNoFile) // a bundle may unpack to gigabytes
	}
	r, size, _, err := files.Unpack(path, f, fi.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, ErrNoFile), err)
	}
	head := make([]byte, min(size, 64))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case elf.IsELF(head):
		return readELF(path, r, size, base)
	case isBTF(head):
		b, err := io.ReadAll(io.NewSectionReader(r, 0, min(size, maxBlob+1)))
		if err != nil {
			return nil, err
		}
		return Parse(path, b, base)
	}
	return nil, fmt.Errorf("%s: %w", path, ErrNoFile)
}

func readELF(path string, r io.ReaderAt, size int64, base *Types) (*Types, error) {
	f, err := elf.Open(path, r, size)
	if err != nil {
		return nil, fmt.Errorf("not a readable ELF file: %w", err)
	}
	if f.Section(".BTF") == nil {
		return nil, fmt.Errorf("%s: %w", path, ErrNoSection)
	}
	if base != nil {
		_, b, err := contents(f, ".BTF")
		if err != nil {
			return nil, err
		}
		return Parse(path+": .BTF", b, base)
	}
	types, _, err := FromELF(f)
	if types != nil {
		return types, nil
	}
	return nil, err
}
