package symlist_test

import (
	"fmt"
	"strings"

	"symbolize/ingest/object/symlist"
)

func ExampleReadKallsyms() {
	list := "ffffffff81000000 T _text\nffffffffc0a01000 t ext4_map_blocks\t[ext4]\n"
	r := strings.NewReader(list)
	err := symlist.ReadKallsyms("kallsyms", r, func(s symlist.KernelSymbol) bool {
		fmt.Printf("%#x %s %q\n", uint64(s.Addr), s.Name, s.Module)
		return true
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0xffffffff81000000 _text ""
	// 0xffffffffc0a01000 ext4_map_blocks "ext4"
}
