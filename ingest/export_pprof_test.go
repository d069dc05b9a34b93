package ingest

// For the tests of pprof files, which lie outside the package because they use
// packages that import it.
var (
	ReadPprofForTest   = readPprof
	UnzipPprofForTest  = unzipPprof
	PprofMemoryForTest = pprofMemory
)

// The fixed places of pprof mappings.
const (
	PprofBaseForTest   = pprofBase
	PprofKernelForTest = pprofKernel
)
