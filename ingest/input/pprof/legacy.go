package pprof

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// The formats before profile.proto, which google/pprof/profile reads: heap, growth, fragmentation,
// contention, thread and CPU profiles of gperftools and tcmalloc, counts of Go, and profiles of Java's
// agent; and heap_v2 of jemalloc, which it does not read.

// countHeader begins a profile of Go with counts, as of goroutines.
var countHeader = regexp.MustCompile(`^\S+ profile: total \d+\n`)

// textHeaders begin the text formats.
var textHeaders = [...]string{"heap profile: ", jemallocHeader, "--- threadz ", "--- contention", "--- mutex:",
	"--- heapz ", "--- cpuz "}

// isLegacy reports whether a file begins as one of the formats before profile.proto.
func isLegacy(head []byte) bool {
	for _, h := range textHeaders {
		if bytes.HasPrefix(head, []byte(h)) {
			return true
		}
	}
	return countHeader.Match(head) || isBinaryCPU(head)
}

// isBinaryCPU reports whether a file begins with the header of a CPU profile of gperftools: words of 4 or
// 8 bytes in either order, of them 0, the number 3 of words that follow, the version 0 or 1, the period,
// and 0 (https://gperftools.github.io/gperftools/cpuprofile-fileformat.html).
func isBinaryCPU(head []byte) bool {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, size := range []int{4, 8} {
			if len(head) < 5*size {
				continue
			}
			var words [5]uint64
			for i := range words {
				if b := head[i*size:]; size == 4 {
					words[i] = uint64(order.Uint32(b))
				} else {
					words[i] = order.Uint64(b)
				}
			}
			if words[0] == 0 && words[1] == 3 && words[2] <= 1 && words[3] > 0 && words[4] == 0 {
				return true
			}
		}
	}
	return false
}

// modernize converts a profile of an older format to profile.proto.
func modernize(data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, []byte(jemallocHeader)) {
		var err error
		if data, err = fromJemalloc(data); err != nil {
			return nil, err
		}
	}
	p, err := profile.ParseData(data)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := p.WriteUncompressed(&out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// jemallocHeader begins a heap profile of jemalloc.
const jemallocHeader = "heap_v2/"

// fromJemalloc converts a heap profile of jemalloc, as of opt.prof, to the text of tcmalloc, which has the
// same sampling (jeprof, ReadHeapProfile):
//
//	heap_v2/RATE
//	  t*: OBJECTS: BYTES [OBJECTS: BYTES]    of all stacks: in use, and ever allocated
//	  t3: …                                  of a thread
//	@ 0xADDRESS 0xADDRESS …
//	  t*: …                                  of this stack
//	  t3: …
//
//	MAPPED_LIBRARIES:
//	lines of /proc/PID/maps
//
// RATE is the mean number of bytes between samples. Counts of threads, if a stack has no line of all, are
// added up. Frames of the allocator's own library, which each stack begins with, are left out, as jeprof
// does by their names.
func fromJemalloc(data []byte) ([]byte, error) {
	head, libraries, _ := bytes.Cut(data, []byte("\nMAPPED_LIBRARIES:\n"))
	allocator, err := jemallocRanges(libraries)
	if err != nil {
		return nil, err
	}
	var out, rows bytes.Buffer
	var total jemallocCounts
	stack, counts := "", jemallocCounts{}
	flush := func() {
		if stack != "" && counts != (jemallocCounts{}) {
			fmt.Fprintf(&rows, "%s @%s\n", counts.text(), stack)
		}
		counts = jemallocCounts{}
	}
	s := bufio.NewScanner(bytes.NewReader(head))
	s.Buffer(nil, 1<<20) // a stack of 128 addresses has 2,500 bytes
	rate := ""
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		switch {
		case n == 1:
			rate = strings.TrimPrefix(line, jemallocHeader)
			if _, err := strconv.ParseInt(rate, 10, 64); err != nil {
				return nil, fmt.Errorf("line 1: %q is not a sampling rate", rate)
			}
		case line == "":
		case line[0] == '@':
			flush()
			stack = withoutAllocator(line[1:], allocator)
		default:
			c, thread, err := parseJemalloc(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			switch {
			case stack == "" && thread == "t*":
				total = c
			case stack == "":
			case thread == "t*":
				counts, counts.all = c, true
			case !counts.all:
				counts.add(c)
			}
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	flush()
	fmt.Fprintf(&out, "heap profile: %s @ heap_v2/%s\n", total.text(), rate)
	rows.WriteTo(&out)
	out.WriteString("\nMAPPED_LIBRARIES:\n")
	out.Write(libraries)
	return out.Bytes(), nil
}

// jemallocRanges returns the mappings of jemalloc's library.
func jemallocRanges(maps []byte) (list []*profile.Mapping, err error) {
	all, err := profile.ParseProcMaps(bytes.NewReader(maps))
	for _, m := range all {
		if strings.HasPrefix(path.Base(m.File), "libjemalloc") {
			list = append(list, m)
		}
	}
	return list, err
}

// withoutAllocator returns a stack without the innermost addresses of some mappings, unless it has no
// others.
func withoutAllocator(stack string, allocator []*profile.Mapping) string {
	words := strings.Fields(stack)
	for i, w := range words {
		at, err := strconv.ParseUint(w, 0, 64)
		if err != nil || !slices.ContainsFunc(allocator, func(m *profile.Mapping) bool { return at > m.Start && at <= m.Limit }) {
			return " " + strings.Join(words[i:], " ")
		}
	}
	return stack
}

// jemallocCounts are the counts of a line: objects and bytes in use, and allocated.
type jemallocCounts struct {
	words [4]int64
	all   bool // of all threads
}

func (c *jemallocCounts) add(o jemallocCounts) {
	for i := range c.words {
		c.words[i] += o.words[i]
	}
}

func (c *jemallocCounts) text() string {
	return fmt.Sprintf("%d: %d [%d: %d]", c.words[0], c.words[1], c.words[2], c.words[3])
}

// jemallocLine is a line of counts.
var jemallocLine = regexp.MustCompile(`^(t\*|t\d+): (\d+): (\d+) \[(\d+): (\d+)\]$`)

func parseJemalloc(line string) (c jemallocCounts, thread string, err error) {
	m := jemallocLine.FindStringSubmatch(line)
	if m == nil {
		return c, "", errors.New("neither counts nor a stack")
	}
	for i := range c.words {
		if c.words[i], err = strconv.ParseInt(m[2+i], 10, 64); err != nil {
			return c, "", err
		}
	}
	return c, m[1], nil
}
