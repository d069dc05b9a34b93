package table

import (
	"fmt"
	"strconv"
)

// Quantity returns a value with three or four digits in its unit: "1.23s".
func Quantity(v uint64, unit string) string {
	switch unit {
	case "nanoseconds":
		switch f := float64(v); {
		case v < 1e3:
			return strconv.FormatUint(v, 10) + "ns"
		case v < 1e6:
			return fmt.Sprintf("%.2fus", f/1e3)
		case v < 1e9:
			return fmt.Sprintf("%.2fms", f/1e6)
		default:
			return fmt.Sprintf("%.2fs", f/1e9)
		}
	case "bytes":
		f, units := float64(v), "kMGTPE"
		if v < 1024 {
			return strconv.FormatUint(v, 10) + "B"
		}
		for f /= 1024; f >= 1024 && len(units) > 1; units = units[1:] {
			f /= 1024
		}
		return fmt.Sprintf("%.2f%cB", f, units[0])
	}
	return strconv.FormatUint(v, 10)
}

// Percent returns a share with two digits; "0%" is nothing at all.
func Percent(part, all uint64) string {
	switch {
	case all == 0 || part == 0:
		return "0%"
	case part == all:
		return "100%"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(all))
}

// Thousands returns a number with commas.
func Thousands(v uint64) string {
	s := strconv.FormatUint(v, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
