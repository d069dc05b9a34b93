package flags

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/exit"
)

// PIDs is a flag value: IDs of processes, or of threads, with commas between them, each
// occurrence adding its own.
type PIDs[T int | int32] []T

// AddPIDs adds --pid.
func AddPIDs[T int | int32](fs *pflag.FlagSet, p *[]T, usage string) {
	fs.VarP((*PIDs[T])(p), "pid", "p", usage)
}

// Set implements pflag.Value.
func (l *PIDs[T]) Set(s string) error {
	for text := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		if err != nil {
			return exit.Usagef("%q is no ID of a process or thread: 123 and 123,456 are", s)
		}
		*l = append(*l, T(n))
	}
	return nil
}

// String implements pflag.Value.
func (l *PIDs[T]) String() string {
	var texts []string
	for _, n := range *l {
		texts = append(texts, strconv.FormatInt(int64(n), 10))
	}
	return strings.Join(texts, ",")
}

// Type implements pflag.Value.
func (*PIDs[T]) Type() string { return "PID" }
