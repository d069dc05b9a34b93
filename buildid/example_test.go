package buildid_test

import (
	"debug/elf"
	"fmt"

	"symbolize/buildid"
)

// The build ID of an ELF file, and the path of its separate debug file.
func ExampleFromNotes() {
	f, err := elf.Open("../fixtures/objects/bin/fixed")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	notes, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		fmt.Println(err)
		return
	}
	if id, ok := buildid.FromNotes(notes, false, 4); ok {
		fmt.Println(id)
		fmt.Println(buildid.DebugPaths(id, []string{"/usr/lib/debug"})[0])
	}
	// Output:
	// 25d5bede07880a4717e27339b881f99c414460ba
	// /usr/lib/debug/.build-id/25/d5bede07880a4717e27339b881f99c414460ba.debug
}
