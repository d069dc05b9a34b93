package record

import (
	"time"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/history"
)

// moduleRecorder is the recorder of kernel modules.
type moduleRecorder struct {
	*history.Modules
	s *session
}

func newModules(s *session) *moduleRecorder {
	return &moduleRecorder{history.NewModules(s.host, history.ModuleReports{Warn: s.warn, Lost: s.lost,
		Wake: s.wake, Clocked: s.clocked}), s}
}

func (m *moduleRecorder) start() error {
	m.Start()
	return nil
}

func (m *moduleRecorder) drain() time.Duration {
	m.Drain()
	return 0
}

func (m *moduleRecorder) stop() { m.Settle() }

func (m *moduleRecorder) add(w *bundle.Writer) error {
	n, err := m.Add(w)
	m.s.summary.Modules = max(m.s.summary.Modules, n)
	return err
}

func (m *moduleRecorder) close() { m.Close() }
