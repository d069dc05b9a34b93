package batch

import (
	"errors"
	"strings"
)

// Stacks is the number of the piece with the stacks in Cut, in place of the number of a part.
const Stacks = -1

// Cut writes the piece of a pack of collected captures that one task reads, for engines that move
// data between tasks themselves: the input of Name for a part, or of Merge for Stacks. It has the
// form of a pack.
func Cut(collected string, part int, path string) error {
	f, err := openRecords(collected)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := createRecords(path)
	if err != nil {
		return err
	}
	for _, e := range f.index {
		switch {
		case e.Name == packRecord, e.Name == headsRecord, e.Name == partName(part),
			part == Stacks && (strings.HasPrefix(e.Name, stacksRecord) || strings.HasPrefix(e.Name, ownRecord)):
			err = errors.Join(err, f.CopyTo(w, e.Name))
		}
	}
	if err != nil {
		return errors.Join(err, w.Abandon())
	}
	return w.Publish()
}
