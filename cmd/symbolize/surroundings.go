package main

import (
	"errors"
	"runtime"
	"runtime/debug"

	"symbolize/store"
	"symbolize/store/db"
)

// storePath returns where the store lies: --store, else as store.DefaultPath says.
func (a *app) storePath() (string, error) {
	if a.store != "" {
		return a.store, nil
	}
	if p := db.DefaultPath(a.env.Getenv); p != "" {
		return p, nil
	}
	return "", withHint(errors.New("there is no place for the store: HOME is not set"),
		"name one with --store DIR or $SYMBOLIZE_STORE")
}

// storeError adds to an error of the store what would mend it.
func storeError(err error) error {
	switch {
	case errors.Is(err, store.ErrNoStore):
		return withHint(err, "`symbolize index PATH…` makes one; --store names another")
	case errors.Is(err, store.ErrVersion):
		return withHint(err, "use the newer symbolize that wrote it, or name another with --store")
	case errors.Is(err, store.ErrLocked):
		return withHint(err, "wait until it is done; --lock-timeout sets how long, "+
			"--store names another")
	case errors.Is(err, store.ErrNoSpace):
		return withHint(err, "free some space, or name a store on another disk with --store; "+
			"what was written before is whole")
	case errors.Is(err, store.ErrUnsafe):
		return withHint(err, "name a store in a directory of your own with --store, or run as its "+
			"owner; a link or pipe in it somebody put there: remove it; --shared-store trusts "+
			"all who can write there")
	case errors.Is(err, store.ErrDamaged):
		return withHint(err, "`symbolize store verify` lists the losses; "+
			"index into another --store")
	}
	return err
}

// openReader opens a store for reading. What it answers may be less than what was indexed,
// where a damaged generation was passed over, and names then come from lesser sources: the
// result is partial.
func (a *app) openReader(path string) (*db.Reader, error) {
	r, err := db.OpenReader(path)
	if err == nil && len(r.PassedOver()) > 0 {
		a.partial = true
		a.sayStoreWarnings(r)
	}
	return r, err
}

// sayStoreWarnings passes on what a store had to say while it was open: damage that
// it got around.
func (a *app) sayStoreWarnings(s interface{ Warnings() []string }) {
	for _, text := range s.Warnings() {
		a.warn("store: "+text, "`symbolize store verify` lists the losses")
	}
}

// limitMemory makes the garbage collector hold the process below max bytes where
// it can; 0 leaves the limit as $GOMEMLIMIT has it. GOGC stays: with it off a limit
// below what is really in use makes the collector run without end (measured).
func limitMemory(max byteSize) {
	if max > 0 {
		debug.SetMemoryLimit(int64(max))
	}
}

// frugalGC is the garbage collector's percent for index: big tables are built and
// let go, and the default leaves a second heap of what was let go. It costs some 10 %
// more CPU time and saves a third of the memory.
const frugalGC = 50

// hastyGC is the garbage collector's percent for lookup, which is over before its heap
// has grown: eight collections in a quarter of a second took an eighth of it. What it
// may grow to lookupMemory bounds.
const hastyGC = 200

// foldGC is the garbage collector's percent for commands that read captures. Their tables have
// next to no pointers, so a collection costs milliseconds however large they are, and what a
// higher value saves in time is lost in fresh pages. Measured on 340 MB with 2.85 M samples: 15,
// 40 and 100 % took 2.15, 1.94 and 2.05 s and 228, 238 and 297 MB.
const foldGC = 40

// setGC sets the garbage collector's percent unless the user has set $GOGC.
func setGC(getenv func(string) string, percent int) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// lookupMemory is what lookup's memory may grow to before the garbage collector works
// harder, in bytes. The names of a big C++ program take 100 MB; what demangling them lets
// go would take as much again.
const lookupMemory = 180 << 20

// holdLookupMemory sets lookupMemory as the limit, or half as much again as is in use:
// at a limit below that the collector would do nothing else.
func holdLookupMemory() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetMemoryLimit(max(lookupMemory, int64(m.HeapAlloc+m.HeapAlloc/2)))
}

func checkJobs(n int) error {
	if n < 0 {
		return usagef("--jobs %d: it is at least 1", n)
	}
	return nil
}
