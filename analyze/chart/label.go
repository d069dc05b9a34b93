package chart

import (
	"fmt"
	"strconv"
	"strings"
)

// timeUnits are the names that units of time go by, with their length in ns.
var timeUnits = map[string]uint64{
	"ns": 1, "nsec": 1, "nsecs": 1, "nanoseconds": 1,
	"us": 1e3, "usec": 1e3, "usecs": 1e3, "microseconds": 1e3, "µs": 1e3,
	"ms": 1e6, "msec": 1e6, "msecs": 1e6, "milliseconds": 1e6,
	"s": 1e9, "sec": 1e9, "secs": 1e9, "seconds": 1e9,
}

// valueLabel writes a bound short: a time with its unit, another number as bpftrace
// does.
func (m *HeatMap) valueLabel(bound string) string {
	v, err := strconv.ParseUint(bound, 10, 64)
	if err != nil {
		return openEnd(bound)
	}
	if per := timeUnits[strings.ToLower(m.Unit)]; per > 0 && v < 1<<63/per {
		return Nanoseconds(v * per)
	}
	if m.Scale.Kind == Linear || m.Scale.Kind == Lhist {
		return m.Scale.linearLabel(bound, 0)
	}
	return binaryLabel(v)
}

// slotLabel names a slot in a table: times are written short, as on the axis.
func (m *HeatMap) slotLabel(slot int) string {
	low, high := m.Scale.Bounds(slot)
	if timeUnits[strings.ToLower(m.Unit)] == 0 || low == "" || high == "" {
		return m.Scale.Label(slot)
	}
	return m.valueLabel(low) + " to " + m.valueLabel(high)
}

// rangeLabel formats the range of a row.
func (m *HeatMap) rangeLabel(low, high string) string {
	unit := ""
	if m.Unit != "" {
		unit = " " + m.Unit
	}
	switch {
	case low == high:
		return low + unit
	case low == "":
		return "up to " + high + unit
	case high == "":
		return "from " + low + unit
	}
	return low + " to " + high + unit
}

// Nanoseconds writes a time with three digits: "1.02us", "16.4us", "131us", "2.1s".
func Nanoseconds(ns uint64) string {
	units := []struct {
		name string
		per  uint64
	}{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}}
	for _, u := range units {
		if ns < u.per {
			continue
		}
		whole, rest := ns/u.per, ns%u.per
		switch {
		case whole >= 100:
			return number(whole) + u.name
		case whole >= 10:
			return trimmed(whole, rest*10/u.per, 1) + u.name
		}
		return trimmed(whole, rest*100/u.per, 2) + u.name
	}
	return number(ns) + "ns"
}

// trimmed writes whole.rest without zeros at its end.
func trimmed(whole, rest uint64, digits int) string {
	text := fmt.Sprintf("%d.%0*d", whole, digits, rest)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// seconds writes a time with a fixed number of decimals.
func seconds(ns uint64, decimals int) string {
	const nano = 1e9
	text := fmt.Sprintf("%d.%09d", ns/nano, ns%nano)
	if decimals == 0 {
		return text[:len(text)-10]
	}
	return text[:len(text)-9+decimals]
}
