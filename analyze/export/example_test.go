package export_test

import (
	"fmt"
	"os"

	"symbolize/analyze/export"
	"symbolize/fixtures/profilebuild"
)

// The stacks of a named profile, for flame graph viewers.
func ExampleFolded() {
	p := profilebuild.Shop()
	if err := export.Folded(os.Stdout, p, export.FoldedOptions{Event: p.DefaultEvent()}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// packer;main;serve;pack;copy_data 300000000
	// packer;main;serve;pack;vfs_read 200000000
	// shop;main;serve;sell 100000000
	// shop;main;serve;sell;copy_data 400000000
}
