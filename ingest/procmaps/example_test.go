package procmaps_test

import (
	"fmt"

	"symbolize/ingest/procmaps"
)

func ExampleParseCode() {
	m, ok := procmaps.ParseCode("7f1000-7f3000 r-xp 00028000 08:01 1234  /usr/lib/libc.so.6\n")
	fmt.Printf("%#x to %#x is %s from offset %#x: %v\n", m.Start, m.End, m.File.Path, m.Offset, ok)
	_, ok = procmaps.ParseCode("7f3000-7f4000 rw-p 00000000 00:00 0  [heap]\n")
	fmt.Println("data is code:", ok)
	// Output:
	// 0x7f1000 to 0x7f3000 is /usr/lib/libc.so.6 from offset 0x28000: true
	// data is code: false
}
