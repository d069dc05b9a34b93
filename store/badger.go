package store

import (
	"fmt"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// Sizes that Badger is opened with. With these a writer needs about 25 MB of
// heap at any size of store; the defaults took 9.8 GB for 4 GB of tables.
const (
	memTableSize = 8 << 20
	// valueThreshold is the size from which values go to the value log, past the
	// compactions.
	valueThreshold = 1 << 10
	// vlogFileSize is where a value log is closed and the next begun. A log is
	// created sparse at twice this size.
	vlogFileSize = 64 << 20
	// maxTxnLSM bounds what one transaction puts into the memtable, below Badger's
	// own limit of 15 % of it.
	maxTxnLSM = memTableSize / 10
	// maxTxnEntries likewise bounds their number.
	maxTxnEntries = 4096
	// maxTxn bounds the bytes of one transaction, values included.
	maxTxn = 4 << 20
)

func badgerOptions(dir string, readOnly bool, log *logSink) badger.Options {
	o := badger.DefaultOptions(dir)
	o.ReadOnly = readOnly
	o.MemTableSize = memTableSize
	o.NumMemtables = 2
	o.NumCompactors = 2
	o.ValueThreshold = valueThreshold
	o.ValueLogFileSize = vlogFileSize
	o.Compression = options.None // chunks are compressed by symtab
	o.BlockCacheSize = 0         // blocks are read where they are mapped
	o.IndexCacheSize = 0
	o.DetectConflicts = false // one writer
	o.MetricsEnabled = false
	o.ExternalMagicVersion = badgerMagic
	o.Logger = log
	return o
}

// badgerMagic stands in Badger's own files, which it refuses to open with another
// one. That a schema is too new is said by us, before Badger looks.
const badgerMagic = 1

// maxWarnings bounds the warnings that a logSink keeps.
const maxWarnings = 64

// logSink collects what Badger has to say, instead of stderr.
type logSink struct {
	mu       sync.Mutex
	warnings []string
	dropped  int
}

func (l *logSink) warn(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.warnings) == maxWarnings {
		l.dropped++
		return
	}
	l.warnings = append(l.warnings, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// forget drops the warnings so far.
func (l *logSink) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warnings, l.dropped = nil, 0
}

// list returns the warnings so far.
func (l *logSink) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append([]string(nil), l.warnings...)
	if l.dropped > 0 {
		out = append(out, fmt.Sprintf("and %d more", l.dropped))
	}
	return out
}

// Errorf implements badger.Logger.
func (l *logSink) Errorf(format string, args ...any) { l.warn(format, args...) }

// Warningf implements badger.Logger.
func (l *logSink) Warningf(format string, args ...any) { l.warn(format, args...) }

// Infof implements badger.Logger: not kept.
func (l *logSink) Infof(string, ...any) {}

// Debugf implements badger.Logger: not kept.
func (l *logSink) Debugf(string, ...any) {}
