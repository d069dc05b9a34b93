package flags

import (
	"strconv"
	"strings"

	"symbolize/cmd/symbolize/internal/exit"
)

// Size is a flag value: a number of bytes with an optional unit, "512MiB", "300M", "1G". Units are
// powers of 1,024; 0 means "no limit of our own".
type Size int64

var byteUnits = []struct {
	suffix string
	shift  uint
}{
	{"kib", 10}, {"mib", 20}, {"gib", 30}, {"tib", 40},
	{"kb", 10}, {"mb", 20}, {"gb", 30}, {"tb", 40},
	{"k", 10}, {"m", 20}, {"g", 30}, {"t", 40}, {"b", 0},
}

// Set implements pflag.Value.
func (b *Size) Set(s string) error {
	text, shift := strings.ToLower(strings.TrimSpace(s)), uint(0)
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 62)
	if err != nil || n > 1<<62>>shift {
		return exit.Usagef("%q is no size: 512MiB, 2G or a number of bytes is", s)
	}
	*b = Size(n << shift)
	return nil
}

// String implements pflag.Value.
func (b *Size) String() string {
	for _, u := range []struct {
		suffix string
		shift  uint
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n := int64(*b); n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type implements pflag.Value.
func (b *Size) Type() string { return "SIZE" }
