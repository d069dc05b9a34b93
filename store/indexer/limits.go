package indexer

import (
	"fmt"
	"io"

	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// estimateSlack is how far the memory of a table may go beyond the estimate, which files of
// any compiler come close to (see debugEstimate). A file that needs more repeats by
// reference data that is in it once.
const estimateSlack = 4

// tableLimit is the memory that building the table of a file may use: the limit of the user, or the
// need of a file of that size.
func (ix *index) tableLimit(data io.ReaderAt, f *elf.File) int64 {
	return max(ix.opts.MaxMemory, estimateSlack*estimate(data, f, ix.opts.NamesOnly))
}

// limitError: a file needs more than its size explains.
type limitError struct{ reason string }

func (e *limitError) Error() string { return limitReached + e.reason }

// limitReached begins the text of a limitError. Path rows keep texts only.
const limitReached = "limit reached: "

// leftOut notes that a table ends before its file does. One of the whole wins over it.
func (s *sources) leftOut(kind store.SourceKind, n uint64) {
	if n == 0 {
		return
	}
	s.fail(&limitError{fmt.Sprintf("%d functions or symbols of the %s table, or their lines, are "+
		"left out: they repeat or overlap more than a file of %d KiB explains, or need more "+
		"than %d MiB (--max-memory)", n, kind, s.size>>10, s.limit>>20)})
	if n := len(s.c.Sources); n > 0 && s.c.Sources[n-1].Info.Kind == kind {
		s.c.Sources[n-1].Info.Producer = partialProducer
	}
}
