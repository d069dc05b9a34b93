package input

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// TimeRange selects samples by their times, as perf script --time does: from From to To, both
// included, in ns of the recording's clock or, with Percent, in millionths of the time
// between the first and the last sample. The zero value selects all.
type TimeRange struct {
	From, To uint64
	Percent  bool
	set      bool
}

// errTimeRange describes the forms of a range.
var errTimeRange = errors.New("it is FROM,TO in seconds of the recording's clock, of which " +
	"either can be empty, or FROM%-TO%")

// ParseTimeRange parses "12.5,13", "12.5,", ",13" and "10%-20%". The empty text selects all.
func ParseTimeRange(s string) (TimeRange, error) {
	if s == "" {
		return TimeRange{}, nil
	}
	from, to, ok := strings.Cut(s, ",")
	t := TimeRange{set: true, To: math.MaxUint64}
	parse, scale := parseDecimal, 9
	if !ok {
		from, to, ok = strings.Cut(s, "-")
		var percentFrom, percentTo bool
		from, percentFrom = strings.CutSuffix(from, "%")
		to, percentTo = strings.CutSuffix(to, "%")
		ok = ok && percentFrom && percentTo && from != "" && to != ""
		t.Percent, scale = true, 4 // a percent is 10,000 millionths
	}
	for _, side := range []struct {
		text string
		to   *uint64
	}{{from, &t.From}, {to, &t.To}} {
		if ok && side.text != "" {
			*side.to, ok = parse(side.text, scale)
		}
	}
	if !ok || from == "" && to == "" || t.From > t.To || t.Percent && t.To > 1_000_000 {
		return TimeRange{}, errTimeRange
	}
	return t, nil
}

// parseDecimal parses a decimal number as a multiple of 10^-digits, exactly.
func parseDecimal(s string, digits int) (uint64, bool) {
	whole, part, _ := strings.Cut(s, ".")
	if len(part) > digits || whole == "" {
		return 0, false
	}
	v, err := strconv.ParseUint(whole+part+strings.Repeat("0", digits-len(part)), 10, 64)
	return v, err == nil
}

// chooseTimes makes opts.Time a range of ns.
func (c *collector) chooseTimes() error {
	t := c.opts.Time
	c.until = math.MaxUint64
	if !t.set {
		return nil
	}
	file := c.Records.File
	if !c.allHave(perfdata.SampleTime) {
		return fmt.Errorf("%s: its samples have no times to choose by", file.Name)
	}
	c.after, c.until = t.From, t.To
	if !t.Percent {
		return nil
	}
	first, last := file.Features.FirstTime, file.Features.LastTime
	if last == 0 {
		var err error
		if first, last, err = c.sampleTimes(); err != nil {
			return err
		}
	}
	span := float64(last - first)
	c.after = first + uint64(span*float64(t.From)/1e6)
	c.until = first + uint64(math.Ceil(span*float64(t.To)/1e6))
	return nil
}

// allHave reports whether all samples have a field.
func (c *collector) allHave(field perfdata.SampleType) bool {
	for i := range c.Records.File.Events {
		if c.Records.File.Events[i].Attr.SampleType&field == 0 {
			return false
		}
	}
	return true
}

// anyHas reports whether samples of an event that is wanted have a field.
func (c *collector) anyHas(field perfdata.SampleType) bool {
	for i := range c.Records.File.Events {
		if c.event[i] >= 0 && c.Records.File.Events[i].Attr.SampleType&field != 0 {
			return true
		}
	}
	return false
}

// sampleTimes reads the times of the first and the last sample, which recorders other than perf
// record do not write.
func (c *collector) sampleTimes() (first, last uint64, err error) {
	first = math.MaxUint64
	var s perfdata.Sample
	var records *perfdata.RecordReader
	for i := range c.Records.NumChunks() {
		records = c.Records.Read(records, c.Records.Chunk(i))
		for records.Next() {
			rec := records.Record()
			if rec.Type != perfdata.TypeSample || c.Records.File.DecodeSample(rec, &s) != nil ||
				s.Time == sideband.NoTime {
				continue
			}
			first, last = min(first, s.Time), max(last, s.Time)
		}
		if err := records.Err(); err != nil {
			return 0, 0, err
		}
	}
	return min(first, last), last, nil
}

// refuseTimes is the error of captures whose samples have no times.
func (o *Options) refuseTimes(path string) error {
	if !o.Time.set {
		return nil
	}
	return fmt.Errorf("%s: its samples have no times to choose by", path)
}
