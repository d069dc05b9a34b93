package analyze

import (
	"context"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/sideband"
	"symbolize/store/indexer"
	"symbolize/store/local"
)

// localOptions are Options.Local with the rest of the session's options.
func (s *Session) localOptions() local.Options {
	o := *s.opts.Local
	o.Index = indexer.Options{Workers: s.opts.Workers, MaxMemory: s.opts.MaxMemory,
		Columns: s.opts.Columns, Progress: o.Index.Progress}
	return o
}

// Local returns the objects of the captures read so far, and where they were found; nil without
// Options.Local.
func (s *Session) Local() []local.Object {
	if s.finder == nil {
		return nil
	}
	return s.finder.Objects()
}

// LocalFiles returns what was found by Local.FindOnly: files, whether the running kernel is among
// the objects, and where separate debug files lie.
func (s *Session) LocalFiles() (paths []string, kernel bool, debugRoots []string) {
	paths, kernel = s.finder.Found()
	return paths, kernel, s.finder.DebugRoots()
}

// findLocal indexes the objects of a capture that are to be found by Options.Local.
func (s *Session) findLocal(ctx context.Context, objects []ingest.Object, host string) error {
	if s.finder == nil {
		return nil
	}
	s.finder.Find(objects, s.view, s.isHere(host))
	sum, err := s.finder.Index(ctx)
	if err != nil {
		return err
	}
	for _, p := range sum.Problems { // the rest has its names: the result is no less than asked for
		s.warnError(p, p.Hint, false)
	}
	return nil
}

// isHere reports whether a recording is of this host.
func (s *Session) isHere(host string) bool { return host != "" && host == s.hostname() }

// identify is resolve.Identify, which asks the files that lie now at recorded paths where the store
// proves nothing.
func (s *Session) identify() func(sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
	opts := resolve.IdentifyOptions{TrustPaths: s.opts.TrustPaths, Hostname: s.hostname()}
	known := resolve.Identify(s.view, opts)
	if s.finder == nil {
		return known
	}
	now := resolve.Identify(s.finder.Rows(), opts)
	return func(q sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
		id, source := known(q)
		switch {
		case source == ingest.IDProven:
			return id, source
		case q.Kind == ingest.VDSO && source == ingest.IDNone:
			s.finder.AddVDSO(context.Background(), q.Kernel) // without it there is no ID
			return known(q)
		case q.Kind != ingest.ELF:
			return id, source
		}
		s.finder.AddRow(&q.File, opts.TrustPaths || s.isHere(q.Host))
		live, proof := now(q)
		if proof == ingest.IDProven || source == ingest.IDNone || live.IsZero() && !q.ByPath.IsZero() {
			return live, proof
		}
		return id, source
	}
}
