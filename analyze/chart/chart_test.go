package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/golden"
)

// TestBCC compares a histogram with bcc's table.py for the same slots
// (print_log2_hist("usecs") of slots 1 to 6 with 0, 1, 3, 250, 12, 2).
func TestBCC(t *testing.T) {
	const want = `     usecs               : count     distribution
         0 -> 1          : 0        |                                        |
         2 -> 3          : 1        |                                        |
         4 -> 7          : 3        |                                        |
         8 -> 15         : 250      |****************************************|
        16 -> 31         : 12       |*                                       |
        32 -> 63         : 2        |                                        |
`
	h := &Histogram{Counts: []uint64{0, 0, 1, 3, 250, 12, 2}}
	if got := AppendHistogram(nil, h, Scale{Kind: BCC}, StyleBCC, "usecs"); string(got) != want {
		t.Errorf("got\n%s", got)
	}
	// libbpf-tools number the same values one lower.
	h.Counts = h.Counts[1:]
	if got := AppendHistogram(nil, h, Scale{}, StyleBCC, "usecs"); string(got) != want {
		t.Errorf("log2: got\n%s", got)
	}
	const wide = `               bytes                         : count     distribution
`
	h = &Histogram{Counts: make([]uint64, 34)}
	h.Counts[33] = 2
	got := string(AppendHistogram(nil, h, Scale{Kind: BCC}, StyleBCC, "bytes"))
	last := "          4294967296 -> 8589934591           : 2        |********************|\n"
	if !strings.HasPrefix(got, wide) || !strings.HasSuffix(got, last) {
		t.Errorf("wide: got\n%s", got)
	}
	const linear = `     kbytes        : count     distribution
        0          : 0        |                                        |
        1          : 3        |********************                    |
        2          : 6        |****************************************|
`
	h = &Histogram{Counts: []uint64{0, 3, 6, 0}}
	got = string(AppendHistogram(nil, h, Scale{Kind: Linear}, StyleBCC, "kbytes"))
	if got != linear {
		t.Errorf("linear: got\n%s", got)
	}
}

// TestBpftrace compares histograms with the examples of bpftrace's manual: hist() with
// closed and open buckets, and lhist(0, 2000, 200).
func TestBpftrace(t *testing.T) {
	bar := func(n int) string { return "|" + strings.Repeat("@", n) + strings.Repeat(" ", 52-n) + "|\n" }
	h := &Histogram{Counts: []uint64{2, 12, 18, 0, 30}}
	h.Add(12, 8)
	want := "(..., 0)               2 " + bar(3) + "[0]                   12 " + bar(20) +
		"[1]                   18 " + bar(31) + "[2, 4)                 0 " + bar(0) +
		"[4, 8)                30 " + bar(52) + "[8, 16)                0 " + bar(0) +
		"[16, 32)               0 " + bar(0) + "[32, 64)               0 " + bar(0) +
		"[64, 128)              0 " + bar(0) + "[128, 256)             0 " + bar(0) +
		"[256, 512)             0 " + bar(0) + "[512, 1K)              0 " + bar(0) +
		"[1K, 2K)               8 " + bar(13)
	s := Scale{Kind: Bpftrace}
	if got := AppendHistogram(nil, h, s, s.Style(), ""); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s = Scale{Kind: Lhist, Min: 0, Max: 2000, Step: 200}
	h = &Histogram{Counts: []uint64{0, 4}}
	h.Add(s.Slots()-1, 1)
	got := string(AppendHistogram(nil, h, s, s.Style(), ""))
	for _, line := range []string{"[0, 200)               4 " + bar(52), "[2000, ...)            1 " +
		bar(13), "[1800, 2000)           0 " + bar(0)} {
		if !strings.Contains(got, line) {
			t.Errorf("lhist: no %q in\n%s", line, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 11 {
		t.Errorf("lhist: %d lines", n)
	}
}

func TestParseScale(t *testing.T) {
	for _, text := range []string{"log2", "log2:3", "bcc", "bpftrace", "bpftrace:2", "linear",
		"linear:0:100:10", "lhist:-50:50:5", "lhist:-9223372036854775808:9223372036854775807:" +
			"9223372036854775807"} {
		s, err := ParseScale(text)
		if err != nil || s.String() != text || s.Describe() == "" {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "log", "log2:", "log2:0", "log2:65", "log2:1:2", "bcc:1", "linear:1",
		"linear:0:10:0", "linear:10:0:1", "lhist", "lhist:0:1000000:1", "lhist:0:1:1:1", "bpftrace:6",
		"linear:0:99999999999999999999:1", "linear:0:10:-1"} {
		if s, err := ParseScale(text); !errors.Is(err, ErrScale) {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
}

// TestScalesCover: the slots of a scale follow one another without a gap up to the
// largest value.
func TestScalesCover(t *testing.T) {
	for _, text := range []string{"log2", "log2:3", "log2:64", "bcc", "bpftrace", "bpftrace:1",
		"bpftrace:5"} {
		s, err := ParseScale(text)
		if err != nil {
			t.Fatal(err)
		}
		next, slots := uint64(0), s.Slots()
		for i := range slots {
			low, high := s.Bounds(i)
			if low == "" || s.Kind == BCC && i == 0 {
				continue
			}
			if low != strconv.FormatUint(next, 10) {
				t.Fatalf("%s: slot %d begins at %s, the one before ends before %d", text, i, low, next)
			}
			last, err := strconv.ParseUint(high, 10, 64)
			if err != nil || last < next {
				t.Fatalf("%s: slot %d ends at %q", text, i, high)
			}
			next = last + 1
		}
		if next != 0 {
			t.Errorf("%s: %d slots end before %d", text, slots, next)
		}
	}
	s := Scale{Kind: Lhist, Min: -10, Max: 15, Step: 10}
	var got []string
	for i := range s.Slots() {
		low, high := s.Bounds(i)
		got = append(got, low+".."+high)
	}
	if want := "..-11 -10..-1 0..9 10..14 15.."; strings.Join(got, " ") != want {
		t.Errorf("lhist: %v, want %s", got, want)
	}
}

// TestTracex3 computes slots as tracex3's kernel part does, and finds the value in them.
func TestTracex3(t *testing.T) {
	s := Scale{Parts: 3}
	for _, v := range []uint64{4, 5, 6, 7, 100, 1000, 4097, 5462, 1 << 20, 1<<40 + 1<<39, 1 << 62} {
		l := uint64(63)
		for 1<<l > v {
			l--
		}
		slot := 3*l + 3*(v-1<<l)>>l
		if v >= 1<<60 {
			slot = 3 * l // 3·(v−base) overflows there; the power itself is exact
		}
		low, high := s.Bounds(int(slot))
		first, _ := strconv.ParseUint(low, 10, 64)
		last, _ := strconv.ParseUint(high, 10, 64)
		if v < first || v > last {
			t.Errorf("%d is in slot %d, which has %s to %s", v, slot, low, high)
		}
	}
}

func TestShades(t *testing.T) {
	for _, most := range []uint64{1, 2, 3, 9, 1000, 1 << 40, math.MaxUint64} {
		s := newShades(most, most, 8)
		if len(s.first) == 0 || s.first[0] != 1 || s.level(0) != 0 || s.level(most) != len(s.first) {
			t.Fatalf("%d: %v", most, s)
		}
		next := uint64(1)
		for level := 1; level <= len(s.first); level++ {
			low, high := s.bounds(level)
			if low != next || high < low || s.level(low) != level || s.level(high) != level {
				t.Errorf("%d: level %d is %d to %d", most, level, low, high)
			}
			if c := s.colour(level, 8); c < 0 || c > 7 || level == len(s.first) && c != 7 {
				t.Errorf("%d: level %d has colour %d", most, level, c)
			}
			next = high + 1
		}
	}
	if s := newShades(0, 0, 8); s.level(0) != 0 || len(s.first) != 0 {
		t.Errorf("nothing: %v", s)
	}
}

// TestScaleEnd: one or two in each cell do not look like a peak, which has the last shade.
func TestScaleEnd(t *testing.T) {
	for _, tt := range []struct {
		name   string
		counts []uint64
		want   string // letters of the cells
		legend string
	}{
		{name: "chance", counts: []uint64{1, 2, 1, 1, 0, 2}, want: ".*.. *", legend: "counts . 1  * 2\n"},
		{name: "peak", counts: []uint64{1, 2, 1, 1, 0, 90}, want: "...." + " #", legend: "# 37-90\n"},
	} {
		m := &HeatMap{Columns: []Column{{End: 1e9, Counts: tt.counts}}}
		text := string(m.AppendText(nil, false))
		if !strings.Contains(text, "|"+tt.want+"|") || !strings.HasSuffix(text, tt.legend) {
			t.Errorf("%s: %s", tt.name, text)
		}
	}
}

func TestDifferences(t *testing.T) {
	samples := []Sample{{10, []uint64{5, 1}}, {20, []uint64{7, 1, 2}}, {30, []uint64{1, 0, 0}},
		{40, []uint64{1, 4}}}
	columns, before := Differences(samples, false)
	if before != 6 || len(columns) != 3 {
		t.Fatalf("%d before, %v", before, columns)
	}
	for i, want := range []Column{{10, 20, []uint64{2, 0, 2}, false}, {20, 30, []uint64{1, 0, 0}, true},
		{30, 40, []uint64{0, 4}, false}} {
		c := columns[i]
		if c.Start != want.Start || c.End != want.End || c.Reset != want.Reset ||
			!equal(c.Counts, want.Counts) {
			t.Errorf("column %d: %v, want %v", i, c, want)
		}
	}
	columns, before = Differences(samples, true)
	if before != 0 || len(columns) != 4 || columns[0].Start != 0 || columns[0].total() != 6 {
		t.Errorf("cleared: %d before, %v", before, columns)
	}
	if columns, before := Differences(nil, false); columns != nil || before != 0 {
		t.Errorf("nothing: %v", columns)
	}
}

func equal(a, b []uint64) bool {
	for i := range max(len(a), len(b)) {
		if at(a, i) != at(b, i) {
			return false
		}
	}
	return true
}

func at(list []uint64, i int) uint64 {
	if i < len(list) {
		return list[i]
	}
	return 0
}

// load is a disk with a slower second half and a few outliers, second by second.
func load(columns int) *HeatMap {
	m := &HeatMap{Title: `lat <b>&"quoted"`, Unit: "usecs", From: "2026-01-02 03:04:05 UTC",
		Notes: []string{"12 counts were made before the first dump"}}
	for i := range columns {
		h := Histogram{}
		for slot, n := range []uint64{0, 0, 3, 40, 300, 900, 250, 60, 8} {
			if i > columns/2 {
				slot += 2
			}
			if n > 0 {
				h.Add(slot, n+uint64(i*slot%7))
			}
		}
		if i%9 == 4 {
			h.Add(16, 1)
		}
		m.Columns = append(m.Columns, Column{Start: uint64(i) * 1e9, End: uint64(i+1) * 1e9,
			Counts: h.Counts, Reset: i == 3})
	}
	return m
}

func TestHeatMapGolden(t *testing.T) {
	m := load(30)
	golden.Compare(t, "heat.txt", m.AppendText(nil, false))
	golden.Compare(t, "heat.colours", m.AppendText(nil, true))
	golden.Compare(t, "heat.svg", m.AppendSVG(nil))
	golden.Compare(t, "heat.html", m.AppendHTML(nil))
	m.Numbered, m.Unit, m.Scale = true, "", Scale{Kind: Linear, Min: 100, Step: 50}
	for i := range m.Columns {
		m.Columns[i].Start, m.Columns[i].End = uint64(i), uint64(i+1)
	}
	golden.Compare(t, "numbered.txt", m.AppendText(nil, false))
	golden.Compare(t, "numbered.svg", m.AppendSVG(nil))
}

// TestMarkup: with any names, the picture is well-formed and has all counts once.
func TestMarkup(t *testing.T) {
	m := load(20)
	m.Title, m.Unit = "<script>\x1b[31m\u202e\xff\ufffe]]>", "'\"><x>"
	out := m.AppendSVG(nil)
	d := xml.NewDecoder(bytes.NewReader(out))
	var sum uint64
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			if _, n, ok := strings.Cut(string(text), "x>: "); ok {
				v, err := strconv.ParseUint(n, 10, 64)
				if err != nil {
					t.Fatalf("%q", text)
				}
				sum += v
			}
		}
		if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "script" || e.Name.Local == "x") {
			t.Errorf("element %s out of a name", e.Name.Local)
		}
	}
	if sum != m.Total() || sum == 0 {
		t.Errorf("cells hold %d counts of %d", sum, m.Total())
	}
	page := string(m.AppendHTML(nil))
	if strings.Contains(page, "<script") || strings.Contains(page, "src=") ||
		strings.Contains(page, "href=") || strings.ContainsRune(page, 0x1b) {
		t.Error("the page has markup out of a name, or loads something")
	}
	if text := m.AppendText(nil, false); bytes.ContainsAny(text, "\x1b\u202e") {
		t.Error("control characters reach the terminal")
	}
}

// TestLarge: many slots and intervals are combined, none is lost.
func TestLarge(t *testing.T) {
	m := &HeatMap{Scale: Scale{Kind: Linear}}
	for i := range 2000 {
		h := Histogram{}
		h.Add(i*13%3000, 1)
		m.Columns = append(m.Columns, Column{Start: uint64(i), End: uint64(i + 1), Counts: h.Counts})
	}
	g := m.fit(svgMaxColumns, svgMaxRows)
	var sum uint64
	for i := range g.columns {
		sum += g.columns[i].total()
	}
	if sum != 2000 || len(g.columns) > svgMaxColumns || g.rows() > svgMaxRows {
		t.Errorf("%d counts, %d columns, %d rows", sum, len(g.columns), g.rows())
	}
	if n := len(m.AppendSVG(nil)); n > 8<<20 {
		t.Errorf("%d bytes", n)
	}
	if (&HeatMap{}).AppendHTML(nil) == nil || (&HeatMap{}).AppendText(nil, true) == nil {
		t.Error("nothing drawn of nothing")
	}
}

func TestSaturates(t *testing.T) {
	h := &Histogram{}
	h.Add(1, math.MaxUint64)
	h.Add(1, 5)
	h.Add(2, 7)
	if h.Counts[1] != math.MaxUint64 || h.Total() != math.MaxUint64 {
		t.Errorf("%v, %d", h.Counts, h.Total())
	}
	if n := scaled(math.MaxUint64/2+1, math.MaxUint64, 40); n != 20 {
		t.Errorf("half of it is %d stars of 40", n)
	}
}

func TestNanoseconds(t *testing.T) {
	for ns, want := range map[uint64]string{0: "0ns", 999: "999ns", 1024: "1.02us", 2000: "2us",
		16384: "16.3us", 131072: "131us", 1048576: "1.04ms", 2_100_000_000: "2.1s"} {
		if got := Nanoseconds(ns); got != want {
			t.Errorf("%d: %s, want %s", ns, got, want)
		}
	}
}

func FuzzParseScale(f *testing.F) {
	for _, s := range []string{"log2:3", "bcc", "bpftrace:1", "linear:0:10:3", "lhist:-5:5:1", ":"} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, slot uint8) {
		s, err := ParseScale(text)
		if err != nil {
			return
		}
		if again, err := ParseScale(s.String()); err != nil || again.String() != s.String() {
			t.Fatalf("%q is %q, which is %v", text, s, err)
		}
		n := s.Slots()
		if n < 1 || n > maxSlots {
			t.Fatalf("%d slots", n)
		}
		h := Histogram{}
		h.Add(min(int(slot), n-1), 3)
		s.Bounds(n - 1)
		for _, style := range []Style{StyleBCC, StyleBpftrace} {
			if len(AppendHistogram(nil, &h, s, style, "")) == 0 {
				t.Fatal("nothing drawn")
			}
		}
		m := &HeatMap{Scale: s, Unit: "ns", Columns: []Column{{Start: 0, End: 1, Counts: h.Counts}}}
		if !bytes.Contains(m.AppendText(nil, false), []byte("# 3")) {
			t.Fatal("the count is not in the heat map")
		}
	})
}

func BenchmarkSVG(b *testing.B) {
	m := load(400)
	b.SetBytes(int64(len(m.AppendSVG(nil))))
	var dst []byte
	for b.Loop() {
		dst = m.AppendSVG(dst[:0])
	}
}
