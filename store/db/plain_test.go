//go:build unix

package db

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"symbolize/fixtures/sweep"
	"symbolize/store"
)

// plant puts something else in the place of a file of a store: a kind of trap.
func plant(t *testing.T, kind, path, victim string) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path))
	switch kind {
	case "symbolic link":
		err = errors.Join(err, os.Symlink(victim, path))
	case "second name":
		err = errors.Join(err, os.Link(victim, path))
	case "named pipe":
		err = errors.Join(err, syscall.Mkfifo(path, 0o600))
	case "device":
		err = errors.Join(err, os.Symlink("/dev/zero", path))
	case "directory":
		err = errors.Join(err, os.Mkdir(path, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlantedFiles has a writer meet traps in the places of files that it opens. It refuses, or
// leaves them alone; and their targets stay as they are.
func TestPlantedFiles(t *testing.T) {
	names := []string{"lock", "FORMAT", "facts/.open-1-1", "facts/" + digest{1}.String(),
		"inputs/" + digest{1}.String(), "gen/2"}
	kinds := []string{"symbolic link", "second name", "named pipe", "device", "directory"}
	rnd := sweep.Rand(t)
	for _, name := range names {
		rnd.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, kind := range kinds[:sweep.Most(len(kinds), 2)] {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				path, victim := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "v")
				fillStore(t, path, 1, 3)
				text := formatText(store.SchemaVersion) // the content for FORMAT
				if err := os.WriteFile(victim, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				plant(t, kind, filepath.Join(path, name), victim)
				w, err := OpenWriter(context.Background(), path, WriterOptions{})
				if err == nil {
					err = errors.Join(w.Merge(t.Context(), testContribution(t, 9, 9)), w.Close())
				}
				refused := errors.Is(err, store.ErrUnsafe) || errors.Is(err, store.ErrDamaged)
				switch {
				case name == "lock" && !refused,
					name == "FORMAT" && kind != "second name" && !refused: // which is only read
					t.Errorf("opened: %v", err)
				case err != nil && !refused:
					t.Error(err)
				}
				info, serr := os.Stat(victim)
				got, rerr := os.ReadFile(victim)
				if serr != nil || rerr != nil || string(got) != text ||
					info.Mode().Perm() != 0o600 {
					t.Errorf("victim: %v, %q, %v %v", info.Mode(), got, serr, rerr)
				}
			})
		}
	}
}

// TestPlantedDirectories has links in the places of directories: nothing is written where
// they lead.
func TestPlantedDirectories(t *testing.T) {
	for _, name := range []string{"gen", "gen/1", "gen/2", "facts", "inputs", "trash", "trash/3", ".tmp-db", "gen/.tmp-1"} {
		path, victim := filepath.Join(t.TempDir(), "store"), t.TempDir()
		fillStore(t, path, 1, 3)
		keep := filepath.Join(victim, "keep")
		if err := os.WriteFile(keep, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		plant(t, "symbolic link", filepath.Join(path, name), victim)
		w, err := OpenWriter(context.Background(), path, WriterOptions{})
		if err == nil {
			err = errors.Join(w.Merge(context.Background(), testContribution(t, 9, 9)), w.Close())
		}
		// A generation that is none is passed over, what is not needed is removed.
		healed := strings.HasPrefix(name, "gen/") || strings.Contains(name, tmpPrefix)
		if (err == nil) != healed {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(victim); len(left) != 1 {
			t.Errorf("%s: in the directory it leads to: %v", name, left)
		}
	}
}

// TestPlantedGeneration has a reader meet traps in a generation: it waits for nothing, reads nothing
// else, and passes the generation over.
func TestPlantedGeneration(t *testing.T) {
	names := []string{"INDEX", "MANIFEST", "KEYREGISTRY", "000001.sst", "000009.sst",
		"000009.vlog", "00009.mem"}
	for _, name := range names {
		for _, kind := range []string{"symbolic link", "named pipe", "device", "directory"} {
			path := filepath.Join(t.TempDir(), "store")
			fillStore(t, path, 1, 3)
			plant(t, kind, filepath.Join(genDir(path, 1), name), "/etc/passwd")
			r := openTestReader(t, path)
			if len(r.PassedOver()) != 1 {
				t.Errorf("%s %s: passed over %q", name, kind, r.PassedOver())
			}
			checkObject(t, r, 2, 22)
		}
	}
	path := filepath.Join(t.TempDir(), "store")
	fillStore(t, path, 1, 3)
	plant(t, "named pipe", filepath.Join(path, formatName), "")
	if _, err := OpenReader(path); !errors.Is(err, store.ErrUnsafe) {
		t.Errorf("FORMAT is a pipe: %v", err)
	}
}
