package indexer

import (
	"context"
	"errors"
	"os"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/ingest/format/container"
	"symbolize/ingest/object/perfmap"
	"symbolize/store"
)

// countingSink is the sink of an index run; it counts objects for the summary.
type countingSink struct {
	store.Sink
	ix    *index
	count bool
}

// Merge implements store.Sink.
func (s countingSink) Merge(ctx context.Context, c *store.Contribution) error {
	if len(c.Sources) == 0 {
		return s.Sink.Merge(ctx, c)
	}
	return s.ix.merge(c, s.count)
}

var errNoProcess = errors.New("whose perf map it is has to be in its name: perf-PID.map")

// readJIT reads a perf map or a jitdump file. Its process is known only by its number.
func (w *worker) readJIT(t *fileTask, f *os.File, count bool) fileResult {
	file := JITFile{Path: t.path, R: f, Size: int64(t.st.size), Written: t.st.mtime}
	sink, err := w.ix.openSink()
	if err != nil {
		w.ix.cancel(err)
		return fileResult{err: err, again: true}
	}
	hold, err := w.ix.budget.Acquire(w.ix.ctx, jitCost*int64(t.st.size))
	if err != nil {
		return fileResult{err: err, again: true}
	}
	defer w.ix.budget.Release(hold)
	id, err := file.add(w.ix.ctx, countingSink{sink, w.ix, count}, t.class)
	switch {
	case w.ix.ctx.Err() != nil:
		return fileResult{again: true}
	case errors.Is(err, store.ErrTooLarge):
		return notMerged(err)
	case err != nil:
		res := damagedFile(err)
		res.id = id
		return res
	}
	if count {
		w.ix.count(func(s *Summary) {
			s.Read++
			s.Raw += t.st.size
			s.JIT++
		})
	}
	return fileResult{id: id}
}

// add merges a file of a class.
func (f *JITFile) add(ctx context.Context, sink store.Sink, class container.Type) (
	id buildid.ID, err error) {
	if class == container.TypeJITDump {
		id, d, err := AddJITDump(ctx, sink, f)
		if err == nil && d.FirstBad != nil {
			err = d.FirstBad
		}
		return id, err
	}
	var ok bool
	if f.PID, ok = perfmap.PIDOf(f.Path); !ok {
		return id, errNoProcess
	}
	id, m, err := AddPerfMap(ctx, sink, f)
	if err == nil && m.FirstBad != nil {
		err = m.FirstBad
	}
	return id, err
}

// jitCost is the working memory per byte of a list of code.
const jitCost = 3

// AddJITFile merges a perf map or jitdump file, by its content, that is proven to be of a process.
func AddJITFile(ctx context.Context, sink store.Sink, path, host string, pid int32,
	process buildid.ID) error {
	r, err := files.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil {
		return err
	}
	f := JITFile{Path: path, R: r, Size: fi.Size(), PID: pid, Host: host,
		Written: fi.ModTime().UnixNano(), Process: process}
	class, err := container.TypeOf(path, r, f.Size)
	if err == nil && class == container.TypeJITDump {
		_, _, err = AddJITDump(ctx, sink, &f)
	} else if err == nil {
		_, _, err = AddPerfMap(ctx, sink, &f)
	}
	return err
}
