package stackmap

import (
	"fmt"
	"strings"
	"testing"
)

// memleakTexts are outputs of versions of memleak, as users have published them.
var memleakTexts = []struct {
	name, text, want string
	warnings         int
}{
	{"names without addresses, two reports",
		"Attaching to pid 5193, Ctrl+C to quit.\n" +
			"[11:16:33] Top 2 stacks with outstanding allocations:\n\taddr = 948cd0 size = 16\n" +
			"\t80 bytes in 5 allocations from stack\n\t\t main+0x6d [allocs]\n\t\t __libc_start_main+0xf0 [libc-2.21.so]\n\n" +
			"[11:16:34] Top 2 stacks with outstanding allocations:\n" +
			"\t160 bytes in 10 allocations from stack\n\t\tstd::vector<int, std::allocator<int> >::push_back(int&&)+0x6d [allocs]\n" +
			"\t\t[unknown] [allocs]\n\t\t[unknown]\n\t\t__libc_start_main+0xf0 [libc-2.21.so]\n\n" +
			"\t3 bytes in 1 allocations from stack\n\t\tstack information lost\n",
		"pid 5193: 160 in 10: user std::vector<int, std::allocator<int> >::push_back(int&&)+0x6d (allocs)|? (allocs)|" +
			"? ([unknown])|__libc_start_main+0xf0 (libc-2.21.so)\npid 5193: 3 in 1: not in the dump\n", 0},
	{"of bcc with addresses", "[13:30:16] Top 10 stacks with outstanding allocations:\n" +
		"\t45 bytes in 45 allocations from stack\n\t\t0x0000559b4789639f\tzmalloc+0x2f [redis-server]\n" +
		"\t\t0x00007fdf47029d90\t[unknown] [libc.so.6]\n\t\t0x00007fdf47029d91\t[unknown]\n",
		"pid -1: 45 in 45: user zmalloc+0x2f (redis-server)|0x7fdf47029d90|0x7fdf47029d91\n", 0},
	{"of libbpf-tools", "using page size: 4096\n[17:35:42] Top 1 stacks with outstanding allocations:\n" +
		"4 bytes in 1 allocations from stack\n\taddr = 0x5594 size = 4\n" +
		"\t0 [<00007f05944c098c>] _Znwm+0x1c [/usr/lib/libstdc++.so.6.0.30]\n\t1 [<0000558508caa1bb>] _Z3foov+0x12 /src/a.cc:12\n" +
		"\t2 [<00007f0594212d90>] [/usr/lib/libc.so.6]\n\t3 [<b515dd6bd2425100>] <null sym>\n",
		"pid -1: 4 in 1: user _Znwm+0x1c (/usr/lib/libstdc++.so.6.0.30)|_Z3foov+0x12 ()|0x7f0594212d90\n", 0},
	{"of the kernel", "[10:45:48] Top 5 stacks with outstanding allocations:\n" +
		"7606272 bytes in 1857 allocations from stack\n\t  0 [<ffffffffad44ab78>] __alloc_pages_nodemask+0x1e8\n" +
		"\t 10 [<ffffffffad44ab79>] <null sym>\n" +
		"\t248 bytes in 4 allocations from stack\n\t\t bpf_prog_load [kernel]\n\t\t sys_bpf+0x3 [kernel]\n",
		"pid -1: 7606272 in 1857: kernel __alloc_pages_nodemask+0x1e8 ()|0xffffffffad44ab79\n" +
			"pid -1: 248 in 4: kernel bpf_prog_load+0x0 ()|sys_bpf+0x3 ()\n", 0},
	{"cut off", "\t8 bytes in 1 allocations from stack\n\t\tf+0x1 [a]\n\t9 bytes in 1 allocations from stack\n\t\tg+0x",
		"pid -1: 8 in 1: user f+0x1 (a)\n", 1},
	{"numbers that are none", "\t99999999999999999999 bytes in 1 allocations from stack\n\t\tf+0x1 [a]\n" +
		"\t7 bytes in 1 allocations from stack\n\n\tf+0x1 [a]\n", "pid -1: 7 in 1: no stack taken\n", 0},
}

func TestMemleak(t *testing.T) {
	for _, tt := range memleakTexts {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Read(&Input{Name: "x", R: strings.NewReader(tt.text), Size: int64(len(tt.text))}, &Options{})
			if err != nil || s.Form != Memleak {
				t.Fatalf("%v, %v", s, err)
			}
			if got := memleakSamples(s); got != tt.want || len(s.Warnings) != tt.warnings {
				t.Errorf("got\n%s%v\nwant\n%s", got, s.Warnings, tt.want)
			}
			for n := range len(tt.text) { // each prefix
				in := &Input{Name: "x", R: strings.NewReader(tt.text), Size: int64(n)}
				if s, err := Read(in, &Options{}); s == nil && err == nil {
					t.Errorf("%d bytes: no stacks and no error", n)
				}
			}
		})
	}
}

// memleakSamples prints samples, one a line.
func memleakSamples(s *Set) string {
	var b strings.Builder
	for _, sm := range s.Samples {
		fmt.Fprintf(&b, "pid %d: %d in %d: ", sm.PID, sm.Weight, sm.Count)
		part, side := sm.User, "user "
		if sm.Kernel.Cause == Present {
			part, side = sm.Kernel, "kernel "
		}
		if part.Cause != Present {
			fmt.Fprintln(&b, part.Cause)
			continue
		}
		b.WriteString(side)
		for i, f := range s.Stack(part.Stack) {
			if i > 0 {
				b.WriteByte('|')
			}
			switch sym := (Symbol{}); f.Status {
			case Named:
				if sym = s.Symbols[f.Ref]; sym.Name == "" {
					fmt.Fprintf(&b, "? (%s)", sym.Object)
				} else {
					fmt.Fprintf(&b, "%s+%#x (%s)", sym.Name, f.Offset, sym.Object)
				}
			default:
				fmt.Fprintf(&b, "%#x", f.Offset)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
