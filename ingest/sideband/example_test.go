package sideband_test

import (
	"context"
	"fmt"
	"os"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// The objects that a recording maps, and the threads that it names.
func ExampleScan() {
	r, err := os.Open("../../fixtures/captures/fixed.data")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := perfdata.Open(r.Name(), r, info.Size())
	if err != nil {
		fmt.Println(err)
		return
	}
	sb, err := sideband.Scan(context.Background(), f, &sideband.ScanOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range sb.Objects.List[sideband.NumFixed:] {
		fmt.Println(o.File.Path)
	}
	fmt.Printf("%q\n", sb.Threads.CommNames())
	// Output:
	// /srv/app/bin/fixed
	// /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
	// [vdso]
	// /usr/lib/x86_64-linux-gnu/libc.so.6
	// ["" "perf-exec" "fixed" "swapper"]
}
