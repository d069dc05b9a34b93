package input

import (
	"errors"

	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/spool"
)

// keyHint is the hint for stackmap.ErrKey.
const keyHint = "name the program's object file with --btf FILE, or say where the fields lie: " +
	"--key user_stack_id:0,kernel_stack_id:4,pid:8,comm:16, in bytes"

// hints are for captures that are recognised and not read, by sentinel. An error that wraps
// several has the hint of the first.
var hints = [...]struct {
	sentinel error
	hint     string
}{
	{perfdata.ErrCutHeader, "copy or record it again: nothing of it can be read"},
	{spool.ErrTooLarge, "if it is one, `--max-unpacked SIZE` of resolve and of reports allows more"},
	{spool.ErrFull, "set TMPDIR to a directory with more room"},
	{bundle.ErrNewer, "read it with the newer symbolize that wrote it"},
	{errPiped, "captures are read more than once: give it as standard input, `… - < PATH`"},
	{errPointer, "`git lfs pull` brings the file"},
	{ErrNotCapture, "a capture is what `perf record -g` or a pprof profiler writes; " +
		"`symbolize info FILE` identifies a file"},
	{stackmap.ErrKey, keyHint},
	{stackmap.ErrTypes, "say where the fields lie: " +
		"--key user_stack_id:0,kernel_stack_id:4,pid:8,comm:16"},
}

// withHint adds the hint for an error, if there is one.
func withHint(err error) error {
	for i := range hints {
		if errors.Is(err, hints[i].sentinel) {
			return ingest.WithHint(err, "%s", hints[i].hint)
		}
	}
	return err
}
