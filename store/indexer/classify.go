package indexer

import (
	"bytes"
	"errors"
	"path"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/object/elf"
)

// errNoObject is for a file that the user named.
var errNoObject = errors.New("no object: neither ELF, nor a packed kernel module, nor kallsyms")

// class is the kind of a file by its first bytes.
type class uint8

const (
	classNone     class = iota
	classELF            // by its magic, under any name
	classPacked         // a kernel module in xz, zstd or gzip
	classKallsyms       // text in the form of /proc/kallsyms
)

var packMagics = [][]byte{
	{0xfd, '7', 'z', 'X', 'Z', 0},
	{0x28, 0xb5, 0x2f, 0xfd}, // zstd
	{0x1f, 0x8b},             // gzip
}

// classify returns the class of a file. Packed files are unpacked only where the name
// promises a kernel module or the user named the file: manuals and logs are packed
// too.
func classify(name string, head []byte, named bool) class {
	if elf.IsELF(head) {
		return classELF
	}
	for _, m := range packMagics {
		if bytes.HasPrefix(head, m) {
			if named || strings.Contains(name, ".ko.") {
				return classPacked
			}
			return classNone
		}
	}
	if (named || name == "kallsyms") && isKallsyms(head) {
		return classKallsyms
	}
	return classNone
}

// isKallsyms reports whether a file begins like "ffffffff81000000 T _text\n".
func isKallsyms(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) < 3 || len(f[0]) < 8 || len(f[0]) > 16 || len(f[1]) != 1 {
		return false
	}
	for _, c := range f[0] {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
			return false
		}
	}
	return true
}

// idOfDir finds the build ID in the path of a file of perf's cache
// (~/.debug/PATH/BUILDID/kallsyms) or of debuginfod's (CACHE/BUILDID/debuginfo):
// the last directory.
func idOfDir(file string) buildid.ID {
	id, err := buildid.Parse(path.Base(path.Dir(file)))
	if err != nil || id.Space() != buildid.GNU || id.Len() < minDirID {
		return buildid.ID{}
	}
	return id
}

// minDirID is the least number of bytes that a directory's name must have to pass
// for a build ID: "ab" or "1234" are other things.
const minDirID = 8
