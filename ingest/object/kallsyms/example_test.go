package kallsyms_test

import (
	"fmt"
	"strings"

	"symbolize/ingest/object/kallsyms"
)

func ExampleRead() {
	list := "ffffffff81000000 T _text\nffffffffc0a01000 t ext4_map_blocks\t[ext4]\n"
	err := kallsyms.Read("kallsyms", strings.NewReader(list), func(s kallsyms.Symbol) bool {
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
