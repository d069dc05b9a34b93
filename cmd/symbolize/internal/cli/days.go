package cli

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Days is a flag of a number of days, at least one.
type Days int

// maxDays keeps days within the calendar.
const maxDays = 36500

// Set implements pflag.Value.
func (d *Days) Set(text string) error {
	unit, digits := 1, text
	if last := len(text) - 1; last >= 0 {
		switch text[last] {
		case 'd':
			digits = text[:last]
		case 'w':
			unit, digits = 7, text[:last]
		default:
			digits = ""
		}
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 || n > math.MaxInt32/7 || int(n)*unit > maxDays {
		return fmt.Errorf("a number of days as 30d, or of weeks as 8w")
	}
	*d = Days(int(n) * unit)
	return nil
}

// String implements pflag.Value.
func (d *Days) String() string {
	if *d == 0 {
		return ""
	}
	return fmt.Sprintf("%dd", int(*d))
}

// Type implements pflag.Value.
func (d *Days) Type() string { return "TIME" }

// Since returns the beginning of the first of so many days, UTC, up to today.
func (d Days) Since() time.Time {
	return time.Now().UTC().AddDate(0, 0, -int(d)).Truncate(24 * time.Hour)
}
