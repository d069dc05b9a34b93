package calltree_test

import (
	"fmt"
	"os"

	"symbolize/analyze/calltree"
	"symbolize/analyze/table"
	"symbolize/fixtures/profilebuild"
)

// The functions of a named profile, heaviest first.
func ExampleNewTop() {
	top := calltree.NewTop(profilebuild.EveryKind(), calltree.TopOptions{Limit: 3})
	if err := top.WriteText(os.Stdout, table.Style{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// event: cpu-clock, 18 samples, total 4.50ms
	// other events: page-faults (--event)
	//       flat  flat%   sum%        cum   cum%  name
	//     2.50ms 55.56% 55.56%     2.50ms 55.56%  do_syscall_64  ([kernel.kallsyms])
	//     1.25ms 27.78% 83.33%     1.25ms 27.78%  memcpy@@GLIBC_2.14  (libc.so.6)
	//   250.00us  5.56% 88.89%   250.00us  5.56%  [guest]
	// 13 more rows
}
