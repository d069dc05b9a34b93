package pprof

// For the tests of pprof files, which lie outside the package because they use
// packages that import it.
var (
	UnzipForTest  = unzip
	MemoryForTest = memoryFor
)

// The fixed places of pprof mappings.
const (
	BaseForTest   = baseAddr
	KernelForTest = kernelStart
)
