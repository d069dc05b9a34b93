package batch

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/files"
)

// ShareExtension is the extension of the files in which tasks of Collect note their share.
const ShareExtension = ".share"

// share is the work of one task of Collect, with the captures of all tasks. Paths are absolute.
type share struct {
	All  []string `json:"all"`
	Done []string `json:"done"` // unreadable ones too
}

// writeShare notes the share of a task beside its files.
func (t *collecting) writeShare(captures, all []string) error {
	var s share
	var err error
	if s.All, err = absolute(all); err != nil {
		return err
	}
	own, err := absolute(captures)
	if err != nil {
		return err
	}
	// By the captures that it was to read: run again, the task replaces its note.
	name := digest(strings.Join(s.All, "\x00")+"\n"+strings.Join(own, "\x00")) + ShareExtension
	left, err := absolute(t.unwritten)
	if err != nil {
		return err
	}
	s.Done = slices.DeleteFunc(own, func(path string) bool { return slices.Contains(left, path) })
	return writeFile(filepath.Join(t.Dir, name), func(w io.Writer) error {
		return ingest.NewJSONEncoder(w).Encode(&s)
	})
}

// absolute returns absolute paths, sorted.
func absolute(paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		out[i] = abs
	}
	slices.Sort(out)
	return out, nil
}

// maxListed is how many captures an error names.
const maxListed = 3

// CheckShares returns an error if a capture that a task of Collect was to read is in no share: the
// task has not run, or not to its end. paths are the files of the tasks, see ShareExtension.
func CheckShares(paths []string) error {
	left := make(map[string]bool)
	var shares []share
	for _, path := range paths {
		s, err := readShare(path)
		if err != nil {
			return err
		}
		shares = append(shares, *s)
		for _, capture := range s.All {
			left[capture] = true
		}
	}
	for _, s := range shares {
		for _, capture := range s.Done {
			delete(left, capture)
		}
	}
	if len(left) == 0 {
		return nil
	}
	list := slices.Sorted(maps.Keys(left))
	text := strings.Join(list[:min(len(list), maxListed)], ", ")
	if len(list) > maxListed {
		text += " …"
	}
	return ingest.WithHint(fmt.Errorf("%d of the captures are not collected: %s", len(list),
		ingest.Printable(text)), "run each share of `symbolize batch collect` to its end")
}

func readShare(path string) (*share, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := new(share)
	if err := json.NewDecoder(f).Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
