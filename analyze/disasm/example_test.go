package disasm_test

import (
	"fmt"

	"symbolize/analyze/disasm"
)

func ExampleNew() {
	d, err := disasm.New("x86_64", disasm.ATT)
	if err != nil {
		fmt.Println(err)
		return
	}
	code := []byte{0x55, 0x48, 0x89, 0xe5, 0xe8, 0xf7, 0x0f, 0, 0, 0x5d, 0xc3}
	for i := range d.Decode(code, 0x1000) {
		fmt.Printf("%2d %s\n", i.Offset, i.Text)
	}
	// Output:
	// 0 push   %rbp
	//  1 mov    %rsp,%rbp
	//  4 call   2000
	//  9 pop    %rbp
	// 10 ret
}
