package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/files"
)

// Names in the store's directory.
const (
	formatName = "FORMAT"
	lockName   = "lock"
	inputsName = "inputs"
	factsName  = "facts"
	gensName   = "gen"
	trashName  = "trash"
	usesName   = "used" // days of last use
	tmpPrefix  = ".tmp-"

	indexName = "INDEX" // in a generation
)

// keptGenerations is how many generations stay: the newest, and the one that a reader may be about
// to open.
const keptGenerations = 2

// generations returns the numbers of a store's generations, newest first.
func generations(root string) ([]uint64, error) {
	if err := files.CheckDirs(root, gensName); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(root, gensName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("generations: %w", err)
	}
	return numbers(entries, ""), nil
}

// numbers returns the numbers that names have after a prefix, largest first.
func numbers(entries []fs.DirEntry, prefix string) (list []uint64) {
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), prefix)
		n, err := strconv.ParseUint(text, 10, 63)
		if ok && err == nil && text == strconv.FormatUint(n, 10) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

func genDir(root string, gen uint64) string {
	return filepath.Join(root, gensName, strconv.FormatUint(gen, 10))
}

// removeLeftovers removes temporary files of runs that were killed. Only the holder of the lock may.
func removeLeftovers(root string) error {
	var errs []error
	for _, name := range []string{"", gensName, inputsName, usesName, trashName} {
		dir := filepath.Join(root, name)
		err := eachName(dir, func(name string) error {
			if strings.HasPrefix(name, tmpPrefix) {
				return os.RemoveAll(filepath.Join(dir, name))
			}
			return nil
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
