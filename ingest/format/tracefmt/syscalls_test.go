package tracefmt

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/golden"
	"symbolize/fixtures/must"
)

func TestSyscall(t *testing.T) {
	for _, tc := range []struct {
		machine string
		number  int64
		want    string
	}{
		{machine: "x86_64", number: 0, want: "read"},
		{machine: "x86_64", number: 202, want: "futex"},
		{machine: "x86_64", number: -1},
		{machine: "x86_64", number: 1000},
		{machine: "aarch64", number: 63, want: "read"},
		{machine: "riscv64", number: 98, want: "futex"},
		{machine: "i686", number: 3, want: "read"},
		{machine: "i586", number: 3, want: "read"},
		{machine: "armv7l", number: 3, want: "read"},
		{machine: "s390x", number: 238, want: "futex"},
		{machine: "", number: 0},
	} {
		if got := Syscall(tc.machine, tc.number); got != tc.want {
			t.Errorf("%s %d: %q, want %q", tc.machine, tc.number, got, tc.want)
		}
	}
}

// TestSyscalls compares syscalls.txt with the module it is made of; -update writes it.
func TestSyscalls(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skipf("go list: %v", err)
	}
	line := regexp.MustCompile(`(?m)^\tSYS_([A-Z0-9_]+) += ([0-9]+)$`)
	var text strings.Builder
	for _, m := range []struct{ arch, machine string }{{"386", "i686"}, {"amd64", "x86_64"}, {"arm", "arm"},
		{"arm64", "aarch64"}, {"loong64", "loongarch64"}, {"ppc64le", "ppc64le"}, {"riscv64", "riscv64"},
		{"s390x", "s390x"}} {
		b := must.Read(t, filepath.Join(dir, "unix", "zsysnum_linux_"+m.arch+".go"))
		type call struct {
			number int
			name   string
		}
		var calls []call
		for _, x := range line.FindAllStringSubmatch(string(b), -1) {
			n, err := strconv.Atoi(x[2])
			if err == nil && x[1] != "SYSCALL_MASK" {
				calls = append(calls, call{n, strings.ToLower(x[1])})
			}
		}
		slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.number, b.number) })
		fmt.Fprintf(&text, "# %s\n", m.machine)
		for i, c := range calls {
			if i > 0 && calls[i-1].number == c.number {
				t.Errorf("%s: %d is %s and %s", m.machine, c.number, calls[i-1].name, c.name)
			}
			fmt.Fprintf(&text, "%d %s\n", c.number, c.name)
		}
	}
	golden.Compare(t, "../syscalls.txt", []byte(text.String()))
}
