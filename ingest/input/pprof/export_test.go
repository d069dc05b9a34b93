package pprof

import (
	"slices"

	"symbolize/ingest/protobuf"
)

// For the tests of pprof files, which are outside the package because they use packages that import
// it.
var (
	UnzipForTest  = unzip
	MemoryForTest = memoryFor
)

// SampleForTest is a decoded sample.
type SampleForTest struct {
	Locations []uint64
	Values    []int64
	Texts     map[string][]string
	Numbers   map[string][]int64
}

// SamplesForTest decodes the samples of a profile with so many values each.
func SamplesForTest(data []byte, types int) (list []SampleForTest, err error) {
	_, texts := withoutSamples(data)
	for r := (&sampleReader{k: protobuf.Fields(data), texts: texts, types: types}); ; {
		s, err := r.next()
		if s == nil || err != nil {
			return list, err
		}
		x := SampleForTest{Locations: slices.Clone(s.locations), Values: slices.Clone(s.values),
			Texts: make(map[string][]string), Numbers: make(map[string][]int64)}
		for _, l := range s.labels {
			if key := string(l.key); l.text != nil {
				x.Texts[key] = append(x.Texts[key], string(l.text))
			} else {
				x.Numbers[key] = append(x.Numbers[key], l.number)
			}
		}
		list = append(list, x)
	}
}

// The fixed places of pprof mappings.
const (
	BaseForTest   = baseAddr
	KernelForTest = kernelStart
)
