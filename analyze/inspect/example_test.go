package inspect_test

import (
	"context"
	"fmt"
	"os"

	"symbolize/analyze/inspect"
	"symbolize/ingest/input"
)

func ExampleFile() {
	info, err := inspect.File(context.Background(), "../../fixtures/captures/fixed.data",
		input.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := info.(*inspect.Capture)
	for _, e := range c.Events {
		fmt.Println(c.Kind, e.Name, e.Samples)
	}
	// Output: perf.data cpu-clock:u 99
}

func ExampleNewTypes() {
	const path = "../../fixtures/maps/kinds.bpf.o"
	found, _, err := inspect.ReadBTF(context.Background(), path, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	types, err := inspect.NewTypes(path, found, []string{"struct wide"}, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := types.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// struct wide {
	// 	__int128 s;                             /*     0     16 */
	// 	unsigned __int128 u;                    /*    16     16 */
	//
	// 	/* size: 32, cachelines: 1, members: 2 */
	// 	/* last cacheline: 32 bytes */
	// };
}
