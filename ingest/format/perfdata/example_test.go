package perfdata_test

import (
	"fmt"
	"os"

	"symbolize/ingest/format/perfdata"
)

// The samples of a recording, counted by event, and the files that it maps.
func ExampleOpen() {
	r, err := os.Open("../../../fixtures/captures/fixed.data")
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
	var m perfdata.Mmap
	var s perfdata.Sample
	count := make([]int, len(f.Events))
	records := f.AllRecords()
	for records.Next() {
		rec := records.Record()
		switch rec.Type {
		case perfdata.TypeMmap2:
			if f.Mmap(rec, &m) == nil && rec.CPUMode() == perfdata.CPUModeUser {
				fmt.Printf("%#x %s\n", m.PgOff, m.Filename)
			}
		case perfdata.TypeSample:
			if f.DecodeSample(rec, &s) == nil {
				count[s.Event]++
			}
		}
	}
	if err := records.Err(); err != nil {
		fmt.Println(err)
	}
	for i, e := range f.Events {
		fmt.Println(e.Name, count[i])
	}
	// Output:
	// 0x1000 /srv/app/bin/fixed
	// 0x1000 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
	// 0x0 [vdso]
	// 0x26000 /usr/lib/x86_64-linux-gnu/libc.so.6
	// cpu-clock:u 99
}
