package chart

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// ErrScale is returned for an unknown scale.
var ErrScale = errors.New("not a scale")

// Kind is how slots of a histogram are numbered.
type Kind uint8

// The kinds of scales, each with the tool that numbers slots in this way.
const (
	// Log2 is libbpf-tools' and the kernel samples': slot i counts 2^i to 2^(i+1)−1, and
	// slot 0 also 0. With Scale.Parts each power of two has that many slots (tracex3: 3).
	Log2 Kind = iota
	// BCC is bcc's bpf_log2l: one more than Log2, slot 0 is never used.
	BCC
	// Bpftrace is bpftrace's hist(): slot 0 counts values below 0, 1 counts 0, 2 counts 1, 3
	// counts 2 and 3, and so on. Scale.Bits is its second argument: each power of two has
	// 2^Bits slots.
	Bpftrace
	// Linear is a number for each slot: slot i counts i. With Scale.Step slot i counts Step
	// values from Min + i·Step on.
	Linear
	// Lhist is bpftrace's lhist(): slot 0 counts values below Min, the last one those not
	// below Max.
	Lhist
)

// Scale maps slots to values.
type Scale struct {
	Kind  Kind
	Parts uint64 // of Log2: slots for each power of two; 0 is 1
	Bits  uint   // of Bpftrace
	// Min, Max and Step of Linear and Lhist, in the unit of the values. Max bounds
	// the slots only if it is more than Min; Step 0 is 1.
	Min, Max, Step int64
}

const (
	maxParts = 64      // slots for a power of two
	maxBits  = 5       // as in bpftrace
	maxSlots = 1 << 16 // of a histogram; bpftrace lets lhist have 1,000
	wordBits = 64
)

// ScaleNames are the forms that ParseScale accepts, for help texts.
const ScaleNames = "log2[:PARTS], bcc, bpftrace[:BITS], linear[:MIN:MAX:STEP], lhist:MIN:MAX:STEP"

// ParseScale reads one of ScaleNames. Errors wrap ErrScale.
func ParseScale(text string) (Scale, error) {
	fail := func(format string, args ...any) (Scale, error) {
		return Scale{}, fmt.Errorf("%w: %q: %s", ErrScale, text, fmt.Sprintf(format, args...))
	}
	name, rest, given := strings.Cut(text, ":")
	var numbers []int64
	if given {
		for i, word := range strings.SplitN(rest, ":", 4) {
			n, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return fail("number %d is %q", i+1, word)
			}
			numbers = append(numbers, n)
		}
	}
	switch {
	case name == "log2" && len(numbers) == 0:
		return Scale{Kind: Log2}, nil
	case name == "log2" && len(numbers) == 1:
		if n := numbers[0]; n < 1 || n > maxParts {
			return fail("a power of two has 1 to %d slots", maxParts)
		}
		return Scale{Kind: Log2, Parts: uint64(numbers[0])}, nil
	case name == "bcc" && len(numbers) == 0:
		return Scale{Kind: BCC}, nil
	case name == "bpftrace" && len(numbers) == 0:
		return Scale{Kind: Bpftrace}, nil
	case name == "bpftrace" && len(numbers) == 1:
		if n := numbers[0]; n < 0 || n > maxBits {
			return fail("hist() of bpftrace has 0 to %d bits", maxBits)
		}
		return Scale{Kind: Bpftrace, Bits: uint(numbers[0])}, nil
	case name == "linear" && len(numbers) == 0:
		return Scale{Kind: Linear}, nil
	case (name == "linear" || name == "lhist") && len(numbers) == 3:
		s := Scale{Kind: Linear, Min: numbers[0], Max: numbers[1], Step: numbers[2]}
		if name == "lhist" {
			s.Kind = Lhist
		}
		return s.checked(fail)
	}
	return fail("known are %s", ScaleNames)
}

// checked refuses steps that never get anywhere, and more slots than are drawn.
func (s Scale) checked(fail func(string, ...any) (Scale, error)) (Scale, error) {
	if s.Step <= 0 {
		return fail("the step is to be more than 0")
	}
	if s.Max <= s.Min {
		return fail("the maximum is to be more than the minimum")
	}
	width := uint64(s.Max) - uint64(s.Min) // correct even where a difference overflows
	if n := (width-1)/uint64(s.Step) + 1; n > maxSlots-2 {
		return fail("%d slots are more than the %d that are drawn", n, maxSlots-2)
	}
	return s, nil
}

// String returns the scale in ParseScale's form.
func (s Scale) String() string {
	switch s.Kind {
	case BCC:
		return "bcc"
	case Bpftrace:
		if s.Bits > 0 {
			return fmt.Sprintf("bpftrace:%d", s.Bits)
		}
		return "bpftrace"
	case Linear, Lhist:
		name := "linear"
		if s.Kind == Lhist {
			name = "lhist"
		} else if s.Step == 0 {
			return name
		}
		return fmt.Sprintf("%s:%d:%d:%d", name, s.Min, s.Max, s.Step)
	}
	if s.parts() > 1 {
		return fmt.Sprintf("log2:%d", s.Parts)
	}
	return "log2"
}

// Describe describes the values of the slots.
func (s Scale) Describe() string {
	switch s.Kind {
	case BCC:
		return "slot i counts 2^(i-1) to 2^i-1, as bcc numbers them"
	case Bpftrace:
		if s.Bits > 0 {
			return fmt.Sprintf("%d slots for each power of two, as bpftrace numbers them",
				1<<s.Bits)
		}
		return "slot 2+i counts 2^i to 2^(i+1)-1, as bpftrace numbers them"
	case Linear, Lhist:
		if s.Step == 0 {
			return "slot i counts the value i"
		}
		return fmt.Sprintf("slots count %d values each, from %d on", s.Step, s.Min)
	}
	if p := s.parts(); p > 1 {
		return fmt.Sprintf("%d slots for each power of two", p)
	}
	return "slot i counts 2^i to 2^(i+1)-1, as libbpf-tools number them"
}

func (s Scale) parts() uint64 { return max(1, s.Parts) }

func (s Scale) step() int64 { return max(1, s.Step) }

// Slots returns how many slots the scale has; counts of others are of no value.
func (s Scale) Slots() int {
	switch s.Kind {
	case Log2:
		return int(wordBits * s.parts())
	case BCC:
		return wordBits + 1
	case Bpftrace:
		return 1 + (wordBits+1-int(s.Bits))<<s.Bits
	}
	n := maxSlots
	if s.Max > s.Min {
		n = int((uint64(s.Max)-uint64(s.Min)-1)/uint64(s.step()) + 1)
	}
	if s.Kind == Lhist {
		n += 2
	}
	return min(n, maxSlots)
}

// Bounds returns the first and the last value that a slot counts, in decimal. "" is a
// bound that the slot does not have.
func (s Scale) Bounds(slot int) (low, high string) {
	switch s.Kind {
	case Linear:
		return s.linear(int64(slot))
	case Lhist:
		switch {
		case slot == 0:
			return "", decimal(s.Min - 1)
		case slot == s.Slots()-1:
			return decimal(s.Max), ""
		}
		return s.linear(int64(slot) - 1)
	case Bpftrace:
		return s.bpftrace(slot)
	case BCC:
		if slot == 0 {
			return "0", "0"
		}
		return power(slot - 1)
	}
	if s.parts() == 1 {
		return power(slot)
	}
	return s.parted(slot)
}

// parted returns the bounds of a slot of Log2 in parts.
func (s Scale) parted(slot int) (low, high string) {
	first, ok := s.part(uint64(slot))
	next, more := s.part(uint64(slot) + 1)
	if !ok || more && next <= first {
		return "", "" // 2 has no three parts
	}
	if slot == 0 {
		first = 0
	}
	if !more {
		return number(first), number(math.MaxUint64)
	}
	return number(first), number(next - 1)
}

// part returns the first value of a slot of Log2 in parts; false beyond the last slot.
func (s Scale) part(slot uint64) (uint64, bool) {
	p := s.parts()
	exp, rest := slot/p, slot%p
	if exp >= wordBits {
		return 0, false
	}
	base := uint64(1) << exp
	hi, lo := bits.Mul64(base, rest)
	q, r := bits.Div64(hi, lo, p) // hi < p: base·rest < 2^64·p
	if r > 0 {
		q++
	}
	return base + q, true
}

// power returns the bounds of 2^i; the value 0 is counted with 1.
func power(i int) (low, high string) {
	first := uint64(1) << i
	last := first<<1 - 1
	if i == 0 {
		first = 0
	}
	return number(first), number(last)
}

// bpftrace returns the bounds of a slot of its hist(): below 0, then 2^Bits values each,
// then 2^Bits slots for each power of two (log2 in bpftrace's codegen).
func (s Scale) bpftrace(slot int) (low, high string) {
	n := uint64(1) << s.Bits
	i := uint64(slot) - 1
	switch {
	case slot == 0:
		return "", "-1"
	case i < n:
		return number(i), number(i)
	}
	width := uint64(1) << (i>>s.Bits - 1)
	first := width * (n + i&(n-1))
	return number(first), number(first + width - 1)
}

func (s Scale) linear(i int64) (low, high string) {
	first := s.Min + i*s.step()
	last := first + s.step() - 1
	if s.Kind == Lhist {
		last = min(last, s.Max-1)
	}
	return decimal(first), decimal(last)
}

func number(v uint64) string { return strconv.FormatUint(v, 10) }

func decimal(v int64) string { return strconv.FormatInt(v, 10) }
