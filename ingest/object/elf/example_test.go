package elf_test

import (
	"fmt"
	"os"

	"symbolize/ingest/object/elf"
)

// The build ID, the segments and the symbols of an executable.
func ExampleOpen() {
	const path = "../../../fixtures/objects/bin/fixed"
	r, err := os.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := elf.Open(path, r, fi.Size())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Machine, f.ID)
	err = f.Symbols(elf.Symtab, func(s elf.Symbol) bool {
		if string(s.Name) == "main" {
			offset, _, mapped := f.Mapped(s.Addr)
			fmt.Printf("main at address %#x, offset %#x in the file: %v\n", uint64(s.Addr),
				uint64(offset), mapped)
		}
		return true
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// EM_X86_64 25d5bede07880a4717e27339b881f99c414460ba
	// main at address 0x4011b3, offset 0x11b3 in the file: true
}
