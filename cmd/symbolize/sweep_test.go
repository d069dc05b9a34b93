package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/must"
	"symbolize/fixtures/sweep"
	"symbolize/store/db"
)

// sweepStore makes a small store of three generations, the newest with a captured input. The sources of the first ones name less of an object: a stripped file before its
// debug file.
func sweepStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path, tree := filepath.Join(dir, "store"), filepath.Join(dir, "tree")
	objects := filepath.Join("..", "..", "fixtures", "objects")
	for _, step := range []struct {
		file string
		args []string
	}{
		{file: "mixed", args: []string{tree, filepath.Join(objects, "lib")}},
		{file: "mixed.debug", args: []string{tree}},
		{file: "fixed", args: []string{tree, "--build-id", kernelOfMixed,
			filepath.Join("..", "..", "fixtures", "kernel", "kallsyms")}},
	} {
		data := must.Read(t, filepath.Join(objects, "bin", step.file))
		if err := os.MkdirAll(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, step.file), data, 0o755); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"index", "-q", "--no-debug-root", "--store", path}, step.args...)
		if code, _, stderr := sweepRun(t, args...); code != cli.OK {
			t.Fatalf("%q: status %d, %s", args, code, stderr)
		}
	}
	return path
}

// kernelOfMixed is the build ID of the kernel that fixtures/captures/mixed.data is of.
const kernelOfMixed = "e4f18d9dc1d0e6fc2b17e93e885a647b3c0a6fc1"

func sweepRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	env, out, errs := inProcess(args...)
	code = Main(t.Context(), env)
	return code, out.String(), errs.String()
}

// TestEveryBit flips the bits of a store's newest generation, facts and inputs, one at a time. Verify notices each;
// and resolve and lookup print the same as with the whole store, or exit with another status than
// 0. It flips a sample of the bits, or with SYMBOLIZE_SWEEP all.
func TestEveryBit(t *testing.T) {
	path := sweepStore(t)
	commands := [][]string{
		{"resolve", "-q", "--format", "script", "--store", path,
			filepath.Join("..", "..", "fixtures", "captures", "mixed-buildid.data")},
		{"lookup", "--store", path, "--build-id", kernelOfMixed, "--offsets", "0x0", "0x1000"},
	}
	var want []string
	for _, args := range commands {
		code, out, stderr := sweepRun(t, args...)
		if code != cli.OK || out == "" {
			t.Fatalf("%q: status %d, %s", args, code, stderr)
		}
		want = append(want, out)
	}
	files, _ := filepath.Glob(filepath.Join(path, "gen", "3", "*"))
	for _, pattern := range []string{"facts/*", "inputs/*", "FORMAT"} {
		found, _ := filepath.Glob(filepath.Join(path, pattern))
		files = append(files, found...)
	}
	if len(files) < 8 {
		t.Fatalf("files %q", files)
	}
	rnd := sweep.Rand(t)
	flips, silent := 0, 0
	for _, file := range files {
		whole := must.Read(t, file)
		for bit := range len(whole) * 8 {
			if !sweepTakes(rnd, bit, len(whole)) {
				continue
			}
			flips++
			b := bytes.Clone(whole)
			b[bit/8] ^= 1 << (bit % 8)
			rewrite(t, file, b)
			if sweepSound(t, path) {
				t.Errorf("%s: verify does not notice bit %d of byte %d", filepath.Base(file), bit%8,
					bit/8)
			}
			for i, args := range commands {
				code, out, _ := sweepRun(t, args...)
				if code == cli.OK && out != want[i] {
					t.Errorf("%s: bit %d of byte %d: %s prints\n%s", filepath.Base(file), bit%8,
						bit/8,
						args[0], golden.FirstDifference(out, want[i]))
				}
				if code == cli.OK {
					silent++
				}
			}
		}
		rewrite(t, file, whole)
	}
	t.Logf("%d bits; %d runs did not need them", flips, silent)
}

// sweepTakes reports whether a bit of a file of so many bytes is to be flipped.
func sweepTakes(rnd *rand.Rand, bit, size int) bool {
	switch os.Getenv("SYMBOLIZE_SWEEP") {
	case "bit":
		return true
	case "byte":
		return bit%8 == bit/8%8 // another one in each
	}
	return rnd.IntN(size*8) < sweep.Most(40, 10) // so many of a file, about
}

// rewrite changes a file's bytes in place: links to it see them too.
func rewrite(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// sweepSound reports whether the store opens and verifies.
func sweepSound(t *testing.T, path string) bool {
	t.Helper()
	r, err := db.OpenReader(path)
	if err != nil {
		return false
	}
	defer r.Close()
	v, err := r.Verify(t.Context())
	return err == nil && v.Sound()
}
