package chart

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/texts"
)

// Histogram is counts by slot.
type Histogram struct {
	// Label is the histogram's key, as in bpftrace; "" if there is one only.
	Label  string
	Counts []uint64 // by slot
}

// Add adds a count to a slot, up to the largest number.
func (h *Histogram) Add(slot int, n uint64) {
	if slot >= len(h.Counts) {
		h.Counts = append(h.Counts, make([]uint64, slot+1-len(h.Counts))...)
	}
	h.Counts[slot] = addSaturating(h.Counts[slot], n)
}

// Total returns the sum of all counts, at most the largest number.
func (h *Histogram) Total() uint64 {
	var sum uint64
	for _, n := range h.Counts {
		sum = addSaturating(sum, n)
	}
	return sum
}

func addSaturating(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// used returns the first and the last slot with a count, and the largest count.
func (h *Histogram) used() (first, last int, most uint64) {
	first, last = -1, -1
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
		most = max(most, n)
	}
	return first, last, most
}

// Style selects the tool that draws such histograms.
type Style uint8

// The styles.
const (
	StyleBCC Style = iota
	StyleBpftrace
)

// Style returns the style of the tool that numbers slots in this way.
func (s Scale) Style() Style {
	if s.Kind == Bpftrace || s.Kind == Lhist {
		return StyleBpftrace
	}
	return StyleBCC
}

// AppendHistogram appends a histogram as text. unit heads the column of values.
func AppendHistogram(dst []byte, h *Histogram, s Scale, style Style, unit string) []byte {
	if style == StyleBpftrace {
		return appendBpftrace(dst, h, s)
	}
	return appendBCC(dst, h, s, unit)
}

const (
	bccStars      = 40
	bccWide       = 32 // slot beyond which bcc's columns are twice as wide
	bpftraceStars = 52
	kilo          = 1 << 10
)

// appendBCC draws as _print_log2_hist and _print_linear_hist of bcc's table.py do: the kernel's
// samples (tracex2) have the same form with narrower columns.
func appendBCC(dst []byte, h *Histogram, s Scale, unit string) []byte {
	_, last, most := h.used()
	if last < 0 {
		return dst
	}
	if s.Kind == Linear && s.Step <= 1 {
		dst = fmt.Appendf(dst, "     %-13s : count     distribution\n", texts.Printable(unit))
		for i := range last + 1 {
			low, _ := s.Bounds(i)
			dst = fmt.Appendf(dst, "        %-10s : %-8d |%-*s|\n", low, h.Counts[i], bccStars,
				stars(h.Counts[i], most, bccStars))
		}
		return dst
	}
	lead, head, width, bar := 5, 19, 10, bccStars
	low, high := s.Bounds(last)
	if wide := max(len(low), len(high)) > width; wide || s.powers() && last > bccWide {
		lead, head, width, bar = 15, 29, 20, bccStars/2
	}
	dst = fmt.Appendf(dst, "%*s%-*s : count     distribution\n", lead, "", head,
		texts.Printable(unit))
	for i := s.firstSlot(); i <= last; i++ {
		low, high := s.Bounds(i)
		if low == "" && high == "" && h.Counts[i] == 0 {
			continue
		}
		dst = fmt.Appendf(dst, "%*s -> %-*s : %-8d |%-*s|\n", width, openEnd(low), width,
			openEnd(high),
			h.Counts[i], bar, stars(h.Counts[i], most, bar))
	}
	return dst
}

// powers reports whether each slot is a power of two.
func (s Scale) powers() bool { return s.Kind == BCC || s.Kind == Log2 && s.parts() == 1 }

// firstSlot is the first one that bcc prints: its slot 0 is never used.
func (s Scale) firstSlot() int {
	if s.Kind == BCC {
		return 1
	}
	return 0
}

func openEnd(bound string) string {
	if bound == "" {
		return "..."
	}
	return bound
}

// stars draws n of most, as bcc's _stars does: width·n/most, rounded down.
func stars(n, most uint64, width int) string {
	return strings.Repeat("*", scaled(n, most, width))
}

// scaled returns width·n/most rounded down, without overflow.
func scaled(n, most uint64, width int) int {
	if most == 0 {
		return 0
	}
	for most > 1<<56 { // width is less than 2^8
		n, most = n>>1, most>>1
	}
	return int(n * uint64(width) / most)
}

// appendBpftrace draws as TextOutput::hist_to_str and lhist_to_str of bpftrace do.
func appendBpftrace(dst []byte, h *Histogram, s Scale) []byte {
	first, last, most := h.used()
	if first < 0 {
		return dst
	}
	for i := first; i <= last; i++ {
		label := s.Label(i)
		if label == "" && h.Counts[i] == 0 {
			continue
		}
		bar := strings.Repeat("@", scaled(h.Counts[i], most, bpftraceStars))
		dst = fmt.Appendf(dst, "%-16s%8d |%-*s|\n", label, h.Counts[i], bpftraceStars, bar)
	}
	return dst
}

// Label names a slot as bpftrace does: "[4, 8)", "[1K, 2K)", "(..., 0)", "[1]".
func (s Scale) Label(slot int) string {
	low, high := s.Bounds(slot)
	linear := s.Kind == Linear || s.Kind == Lhist
	short := func(bound string, add uint64) string {
		if linear {
			return s.linearLabel(bound, int64(add))
		}
		v, err := strconv.ParseUint(bound, 10, 64)
		if err != nil || v+add < v {
			return "..."
		}
		return binaryLabel(v + add)
	}
	switch {
	case low == "" && high == "":
		return ""
	case low == "" && !linear:
		return "(..., 0)"
	case low == "":
		return "(..., " + short(high, 1) + ")"
	case high == "":
		return "[" + short(low, 0) + ", ...)"
	case low == high && !(linear && s.Step > 0):
		return "[" + short(low, 0) + "]"
	}
	return "[" + short(low, 0) + ", " + short(high, 1) + ")"
}

// binaryLabel writes a power of 1,024 with its letter, if it is exact.
func binaryLabel(v uint64) string {
	const letters = "KMGTPE"
	i := 0
	for ; v != 0 && v%kilo == 0 && i < len(letters); i++ {
		v /= kilo
	}
	if i == 0 {
		return number(v)
	}
	return number(v) + letters[i-1:i]
}

// linearLabel writes K and M only where the step is a multiple of 1,024.
func (s Scale) linearLabel(bound string, add int64) string {
	v, err := strconv.ParseInt(bound, 10, 64)
	if err != nil || v+add < v {
		return "..."
	}
	v += add
	switch {
	case s.step()%kilo != 0 || v == 0:
		return decimal(v)
	case v%(kilo*kilo) == 0:
		return decimal(v/(kilo*kilo)) + "M"
	case v%kilo == 0:
		return decimal(v/kilo) + "K"
	}
	return decimal(v)
}

// Sort puts histograms in the order in which bpftrace prints them: the largest last,
// equal ones by label.
func Sort(list []*Histogram) {
	slices.SortStableFunc(list, func(a, b *Histogram) int {
		if x, y := a.Total(), b.Total(); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Label, b.Label)
	})
}
