package batch

import (
	"errors"
)

// Stacks is the number of the piece with the stacks in Cut, in place of the number of a part.
const Stacks = -1

// Cut writes the piece of a collected capture that one task reads, for engines that move data
// between tasks themselves: the input of Name for a part, or of Merge for Stacks. It has the form
// of a collected capture.
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
	names := []string{headRecord, partName(part)}
	if part == Stacks {
		names = []string{headRecord, stacksRecord, ownRecord}
	}
	for _, name := range names {
		if err == nil {
			err = f.CopyTo(w, name)
		}
	}
	if err != nil {
		return errors.Join(err, w.Abandon())
	}
	return w.Publish()
}
