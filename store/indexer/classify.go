package indexer

import (
	"errors"
	"path"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/filetype"
	"symbolize/ingest/object/perfmap"
)

// errNoObject is for a file that the user named.
var errNoObject = errors.New("no object: neither ELF, nor a packed kernel module, nor kallsyms")

// classify returns the type of a file that can be an object, else filetype.Unknown. Packed
// files are unpacked only where the name promises a kernel module or the user named the file:
// manuals and logs are packed too.
func classify(name string, head []byte, named bool) filetype.Type {
	_, isMap := perfmap.PIDOf(name)
	switch t := filetype.Head(head); {
	case isMap && (t == filetype.PerfMap || t == filetype.Kallsyms): // sizes pass for types
		return filetype.PerfMap
	case t == filetype.ELF,
		t.Packed() && (named || strings.Contains(name, ".ko.")),
		t == filetype.Kallsyms && (named || name == "kallsyms"), t == filetype.JITDump,
		t == filetype.PerfMap && named:
		return t
	}
	return filetype.Unknown
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
