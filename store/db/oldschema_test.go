package db

import (
	"archive/tar"
	"bytes"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// schema1Digest is the digest printed by the program that wrote testdata/schema1.tar.zst.
// It is of a small executable with debug information, and a kallsyms text kept raw.
const schema1Digest = "1ff603d91d41ede5339c550454076a1f9c2d9226a6ce9a78d9cf4cb61db1d905"

// unpackOldStore unpacks a store that a program of schema 1 wrote.
func unpackOldStore(t *testing.T) string {
	t.Helper()
	packed, err := os.ReadFile("testdata/schema1.tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, b, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestOldSchema reads a store of schema 1, and writes to it: it keeps its digest, and
// programs of schema 1 refuse it from then on.
func TestOldSchema(t *testing.T) {
	path := unpackOldStore(t)
	r := openTestReader(t, path)
	if sum, err := r.Digest(t.Context()); err != nil || hex.EncodeToString(sum[:]) != schema1Digest {
		t.Fatalf("digest %x, %v", sum, err)
	}
	r.Close()
	if v := mustVerify(t, path); v.Objects != 2 || v.Sources != 4 || len(v.Problems) > 0 {
		t.Fatalf("verify: %+v", v)
	}
	w := openTestWriter(t, path)
	if sum, err := w.Digest(t.Context()); err != nil || hex.EncodeToString(sum[:]) != schema1Digest {
		t.Errorf("digest for a writer %x, %v", sum, err)
	}
	mustMerge(t, w, testContribution(t, 1, 5))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if v := mustVerify(t, path); v.Objects != 3 || v.Sources != 5 || len(v.Problems) > 0 {
		t.Errorf("verify after writing: %+v", v)
	}
	newest := genDir(path, openTestReader(t, path).gen)
	for _, file := range []string{
		filepath.Join(path, formatName), filepath.Join(newest, sumsName),
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b, []byte("\nschema 2\n")) {
			t.Errorf("%s does not say schema 2:\n%s", file, b)
		}
	}
}
