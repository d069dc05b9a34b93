package db

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"symbolize/ingest/files"
	"symbolize/store"
)

// Sizes that Badger is opened with. With these a writer needs about 25 MB of heap at any size of
// store.
const (
	memTableSize = 2 << 20
	// valueThreshold is the size from which values go to the value log: manifests of thousands of
	// variants, and large directories.
	valueThreshold = 256 << 10
	// vlogFileSize is where a value log is closed and the next begun. A log is created sparse at
	// twice this size.
	vlogFileSize = 64 << 20
	// levelZeroTables is from how many tables of a memtable each Badger rewrites them in larger ones.
	// A compaction is most of a writer's memory, and an index is written only once.
	levelZeroTables = 1000
	// maxTxn bounds the bytes of one transaction, below Badger's own limit of 15 % of the memtable.
	maxTxn = memTableSize / 10
	// maxTxnEntries likewise bounds their number.
	maxTxnEntries = 4096
)

func badgerOptions(dir string, readOnly bool, log *logSink) badger.Options {
	o := badger.DefaultOptions(dir)
	o.ReadOnly = readOnly
	o.MemTableSize = memTableSize
	o.NumMemtables = 2
	o.NumCompactors = 2
	o.NumLevelZeroTables = levelZeroTables
	o.NumLevelZeroTablesStall = 2 * levelZeroTables
	o.ValueThreshold = valueThreshold
	o.ValueLogFileSize = vlogFileSize
	o.Compression = options.None
	o.BlockCacheSize = 0 // blocks are read where they are mapped
	o.IndexCacheSize = 0
	o.DetectConflicts = false // one writer
	o.MetricsEnabled = false
	o.VerifyValueChecksum = true // covers the lengths of values in the log, too
	o.ExternalMagicVersion = badgerMagic
	o.Logger = log
	return o
}

// openBadger opens a database; a panic of Badger's, which damage causes, comes back as ErrDamaged.
func openBadger(o badger.Options) (db *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = store.Damagef("%s: %v", o.Dir, p)
		}
	}()
	if err := checkOpenFiles(o.Dir); err != nil {
		return nil, err
	}
	return badger.Open(o)
}

// spareFiles is the number of files besides the database's that a process may have open: files it
// reads and writes, and new logs and tables of Badger.
const spareFiles = 48

// checkOpenFiles refuses a database that has more files than may be open. Badger keeps all of
// them open, and where one more cannot be opened in the middle of its work it ends the
// process.
func checkOpenFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	limit, ok := files.MaxOpen()
	if need := uint64(len(entries) + spareFiles); ok && limit < need {
		return fmt.Errorf("%s: %w: %d files may be open, at least %d are needed", dir, store.ErrLimit,
			limit, need)
	}
	return nil
}

// badgerMagic is in Badger's own files, which it refuses to open with another one. A schema that is
// too new is reported by us, before Badger looks.
const badgerMagic = 1

// maxWarnings bounds the warnings that a logSink keeps.
const maxWarnings = 64

// logSink collects Badger's messages, instead of stderr.
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
