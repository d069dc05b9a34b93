package db

import (
	"fmt"

	"symbolize/store"
)

// testRows returns n rows as a library directory has them.
func testRows(n int) store.DirRows {
	var rows store.DirRows
	for i := range n {
		rows = append(rows, store.PathRow{Name: fmt.Sprintf("lib%04d.so", i), Inode: uint64(1000 + 3*i),
			Size: uint64(n), ID: testID(i), Looked: []string{"/usr/lib/debug"}})
	}
	return rows.Sort()
}
