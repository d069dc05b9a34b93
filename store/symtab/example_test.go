package symtab_test

import (
	"fmt"

	"symbolize/ingest/addr"
	"symbolize/store/symtab"
)

// A table is built once, kept as bytes, and answers addresses in ascending order in one walk.
func Example() {
	b := symtab.NewBuilder(symtab.Options{})
	b.Add(symtab.Func{Start: 0x1000, Size: 0x40, Name: "main"})
	b.Add(symtab.Func{Start: 0x1040, Size: 0x100, Name: "_Z5parsePKc"})
	encoded := b.Encode()
	table, err := symtab.Open(encoded.Header, encoded)
	if err != nil {
		fmt.Println(err)
		return
	}
	addrs := []addr.Addr{0x1004, 0x1080, 0x2000}
	hits := make([]symtab.Hit, len(addrs))
	if err := table.Join(addrs, hits); err != nil {
		fmt.Println(err)
		return
	}
	for i, hit := range hits {
		if !hit.OK {
			fmt.Printf("%#x: no function\n", uint64(addrs[i]))
			continue
		}
		name, err := table.Name(hit.Name)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%#x: %s+%#x\n", uint64(addrs[i]), name, uint64(addrs[i]-hit.Start))
	}
	// Output:
	// 0x1004: main+0x4
	// 0x1080: _Z5parsePKc+0x40
	// 0x2000: no function
}
