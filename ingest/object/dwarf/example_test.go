package dwarf_test

import (
	"context"
	"debug/elf"
	"fmt"
	"os"

	"symbolize/ingest/object/dwarf"
)

// The functions of a debug file with the calls that were inlined into them.
func ExampleData_Walk() {
	r, err := os.Open("../../../fixtures/objects/bin/mixed.debug")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	f, err := elf.NewFile(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	var sections []dwarf.RawSection
	for i, s := range f.Sections {
		if s.Type == elf.SHT_PROGBITS {
			sections = append(sections, dwarf.RawSection{Name: s.Name, Offset: s.Offset,
				Size: s.FileSize, Compressed: s.Flags&elf.SHF_COMPRESSED != 0, Index: i})
		}
	}
	loaded := dwarf.Load(r, sections, dwarf.LoadOptions{Name: r.Name(), Class64: true})
	defer loaded.Close()
	data := dwarf.New(loaded.Sections, dwarf.Options{Name: r.Name()})
	err = data.Walk(context.Background(), 1, func(u *dwarf.Unit) error {
		fmt.Printf("%s, DWARF %d\n", u.Name, u.Version)
		for _, fn := range u.Functions {
			if len(fn.Ranges) > 0 && fn.Sub != dwarf.NoSub {
				fmt.Printf("%s: %d inlined\n", u.Subs[fn.Sub].Name, len(fn.Inlines))
			}
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// mixed.c, DWARF 5
	// main: 1 inlined
	// worker: 0 inlined
	// seconds: 0 inlined
	// work_in_kernel: 0 inlined
	// work_in_libc: 0 inlined
	// work_in_library: 0 inlined
	// fill_values: 0 inlined
	// next_random: 0 inlined
}
