package symtab

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// TestNamesOnlyBytes compares the bytes of a table of names: later additions to the format
// must not change them. The sum covers zstd's output, and so may change with its level and
// the version of the library; the digest may not.
func TestNamesOnlyBytes(t *testing.T) {
	const (
		wantDigest = "1a491cfc6d01d39879c1ce535f0bf724f8d571e504a45a7175b505e5bb5612f6"
		wantBytes  = "e871bb4718cce1db32e8995a656ba3e0f443c3e87c9412f2192260a10436aa48"
	)
	e := encode(t, Options{ChunkSize: 4 << 10, InlineSize: -1}, likeC(5000)...)
	if got := hex.EncodeToString(e.Digest[:]); got != wantDigest {
		t.Errorf("digest %s, want %s", got, wantDigest)
	}
	sum := sha256.New()
	sum.Write(e.Header)
	for _, list := range [][][]byte{e.Chunks, e.Strings} {
		for _, b := range list {
			sum.Write(b)
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != wantBytes {
		t.Errorf("bytes %s, want %s", got, wantBytes)
	}
}
