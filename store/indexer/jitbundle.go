package indexer

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/input"
	"symbolize/ingest/sideband"
)

// BundledFile is a perf map or a jitdump file in a capture bundle, for Options.Bundled.
type BundledFile struct {
	JITFile
	dump bool
}

// BundledFiles returns the perf maps and jitdump files of the bundles among captures, valid until
// these are closed, and the facts about them that cannot be read.
func BundledFiles(captures []*input.Capture) (list []*BundledFile, problems []Problem) {
	for _, c := range captures {
		b := c.Bundle()
		if b == nil {
			continue
		}
		for _, name := range b.Names() {
			f, err := bundledFile(b, name)
			if err != nil {
				problems = append(problems, Problem{Path: b.Name, Err: err})
			}
			if f != nil {
				list = append(list, f)
			}
		}
	}
	return list, problems
}

// bundledFile returns the file that an entry is; nil for other entries.
func bundledFile(b *bundle.Bundle, name string) (*BundledFile, error) {
	pid, ok := bundle.PerfMapPID(name)
	dump := false
	if !ok {
		if pid, dump = bundle.JITDumpPID(name); !dump {
			return nil, nil
		}
	}
	r, size, err := b.Entry(name)
	if err != nil {
		return nil, err
	}
	host := b.Manifest.Host
	f := &BundledFile{dump: dump, JITFile: JITFile{Path: b.Name + ": " + name, R: r, Size: size,
		PID: pid, Host: host, Written: int64(b.Manifest.End.Realtime)}}
	c, err := b.Compiled(pid)
	of := c.PerfMap
	if dump {
		of = c.JITDump
	}
	if of != nil {
		f.Written = int64(of.Written)
	}
	f.Process = sideband.ProcessIdentity(host, pid, addr.PC(c.VDSO))
	return f, err
}

// bundled indexes a perf map or a jitdump file of a bundle.
func (w *worker) bundled(f *BundledFile) {
	sink, err := w.ix.openSink()
	if err != nil {
		w.ix.cancel(err)
		return
	}
	hold, err := w.ix.budget.Acquire(w.ix.ctx, jitCost*f.Size)
	if err != nil {
		return // the context has ended
	}
	defer w.ix.budget.Release(hold)
	to := countingSink{sink, w.ix, true}
	if f.dump {
		_, d, err2 := AddJITDump(w.ix.ctx, to, &f.JITFile)
		if err = err2; err == nil {
			err = d.FirstBad
		}
	} else {
		_, m, err2 := AddPerfMap(w.ix.ctx, to, &f.JITFile)
		if err = err2; err == nil {
			err = m.FirstBad
		}
	}
	if w.ix.ctx.Err() != nil {
		return
	}
	if err != nil {
		w.ix.problem(Problem{Path: f.Path, Err: err})
	}
	w.ix.count(func(s *Summary) { s.JIT++ })
}
