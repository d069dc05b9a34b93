package bundle

// Bounds on reading a bundle, independent of its own sizes. They are far above the sizes that
// recorders write and keep a hostile file of a few KB from filling memory or disk.
const (
	maxManifest = 16 << 20 // bytes of manifest.json
	maxModules  = 64 << 20 // of kernel/modules.json
	maxCompiled = 64 << 10 // of proc/PID/compiled.json
	maxEntries  = 1 << 18  // three per process, and the dumps
	maxTotal    = 8 << 30  // bytes of the unpacked tar, see also spool.Unpacked
	maxWindow   = 64 << 20 // of zstd, allocated: `zstd -19 --long=26` still reads
	maxName     = 240      // bytes of an entry's name
	maxWarnings = 100      // kept of one bundle

	// maxMerged is how many entries are made of an unfinished bundle, whose manifest is to be
	// no larger than maxManifest.
	maxMerged  = 1 << 16
	maxMissing = 10_000 // programs whose code is missing, of an unfinished bundle
)

// Addresses in users' stacks that no process has; see "Stacks" in the package comment.
const (
	OutsideAddress   = 0         // outside of all that the process could run
	GoneAddress      = 1<<56 - 1 // the process had ended before its mappings could be read
	AmbiguousAddress = 1<<56 - 2 // it was one thing or another, as mappings changed
	UnreadAddress    = 1<<56 - 3 // the process's mappings could not be read
)

// UserTimeSpan is how long after its time a user's stack was taken at most, ns; see "Stacks" in the
// package comment.
const UserTimeSpan = 1 << 22

// UnknownTime is the time of kernel's stacks whose addresses may have been one thing or another;
// see "Stacks" in the package comment.
const UnknownTime = 1<<64 - 1
