package perfdata

import (
	"testing"

	"symbolize/fixtures/perfbuild"
)

// simpleperfRecords is a file with one record of each type that simpleperf has, and its features.
func simpleperfRecords(big bool) *perfbuild.File {
	b := perfbuild.NewOrder(big)
	for n := range simpleperfNames {
		if t := firstSimpleperf + Type(n); t.Known() {
			b.Simpleperf(uint32(t), make([]byte, 16))
		}
	}
	b.SimpleperfMeta("simpleperf_version", "1.build.7")
	for x := featureSimpleperfFile; x <= featureSimpleperfETM; x++ {
		if x != featureSimpleperfMeta {
			b.Feature(int(x), []byte{})
		}
	}
	return b
}

// TestWriterKnowsAll: fixtures/perfbuild makes every record and every feature that this package has
// a name for, in both byte orders, and they are read without damage.
func TestWriterKnowsAll(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		big := b.BigEndian
		plain, kernel := perfbuild.Everything(big)
		first, _ := perfbuild.Everything(big)
		first.Compress(kernel, perfbuild.Zstd{})
		second, _ := perfbuild.Everything(big)
		second.Compress(kernel, perfbuild.Zstd{Second: true})
		types, features := make(map[Type]bool), make(map[Feature]bool)
		for _, data := range [][]byte{plain.Bytes(), plain.Pipe(), first.Bytes(), second.Bytes(), simpleperfRecords(big).Bytes()} {
			f := openBytes(t, data)
			for _, rec := range records(t, f) {
				types[rec.Type] = true
			}
			for _, w := range f.Warnings {
				t.Errorf("warning %v", w)
			}
			if len(f.Features.Unknown) > 0 {
				t.Errorf("unknown features %v", f.Features.Unknown)
			}
			for x := range f.Features.Sections {
				features[x] = true
			}
		}
		for n := range firstSimpleperf + maxSimpleperf {
			if n.Known() && !types[n] {
				t.Errorf("no record of type %s", n)
			}
		}
		for x := range Feature(numFeatures - 1) {
			if x.Known() && !features[x] {
				t.Errorf("no feature %s", x)
			}
		}
	})
}
