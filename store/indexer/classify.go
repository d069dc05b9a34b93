package indexer

import (
	"errors"
	"path"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/format/container"
	"symbolize/ingest/object/perfmap"
)

// errNoObject is for a file that the user named.
var errNoObject = errors.New("no object: neither ELF, nor a packed kernel module, nor kallsyms")

// classify returns the type of a file that can be an object, else container.TypeUnknown. Packed
// files are unpacked only where the name promises a kernel module or the user named the file:
// manuals and logs are packed too.
func classify(name string, head []byte, named bool) container.Type {
	_, isMap := perfmap.PIDOf(name)
	switch t := container.TypeOfHead(head); {
	case isMap && (t == container.TypePerfMap || t == container.TypeKallsyms): // sizes pass for types
		return container.TypePerfMap
	case t == container.TypeELF,
		t.Packed() && (named || strings.Contains(name, ".ko.")),
		t == container.TypeKallsyms && (named || name == "kallsyms"), t == container.TypeJITDump,
		t == container.TypePerfMap && named:
		return t
	}
	return container.TypeUnknown
}

// idOfDir finds the build ID in the path of a file of perf's cache (~/.debug/PATH/BUILDID/kallsyms)
// or of debuginfod's (CACHE/BUILDID/debuginfo): the last directory.
func idOfDir(file string) buildid.ID {
	id, err := buildid.Parse(path.Base(path.Dir(file)))
	if err != nil || id.Space() != buildid.GNU || id.Len() < minDirID {
		return buildid.ID{}
	}
	return id
}

// minDirID is the least number of bytes that a directory's name must have to pass for a build ID:
// "ab" or "1234" are other things.
const minDirID = 8
