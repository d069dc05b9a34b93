package ingest

// ReadPprofForTest is readPprof, for tests outside the package.
func ReadPprofForTest(name string, data []byte, opts Options) (*Profile, error) {
	return readPprofWith(name, data, opts)
}
