package bundle

// Bounds on reading a bundle, independent of its own sizes. They are far above the sizes that
// recorders write and keep a hostile file of a few KB from filling memory or disk.
const (
	maxManifest = 16 << 20 // bytes of manifest.json
	maxEntries  = 1 << 18  // three per process, and the dumps
	maxTotal    = 8 << 30  // bytes of the unpacked tar
	// Of a small file no more than freeTotal and maxRatio times its size is unpacked:
	// zstd makes 32,000 bytes of one.
	freeTotal   = 256 << 20
	maxRatio    = 256      // deep stacks, which pack best, a hundredfold
	maxWindow   = 64 << 20 // of zstd, allocated: `zstd -19 --long=26` still reads
	maxName     = 240      // bytes of an entry's name
	maxWarnings = 100      // kept of one bundle

	// maxMerged is how many entries are made of an unfinished bundle, whose manifest is to be
	// no larger than maxManifest.
	maxMerged  = 1 << 16
	maxMissing = 10_000 // programs whose code is missing, of an unfinished bundle
)
