package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"symbolize/analyze/advice"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input"
)

// Capture describes a capture of any form. Its JSON names are an interface.
type Capture struct {
	File      string           `json:"file"`
	Kind      string           `json:"kind"` // "perf.data", "bundle", "pprof" or a stack map's form
	Size      int64            `json:"size"`
	ByteOrder string           `json:"byte_order,omitempty"`
	Recorder  string           `json:"recorder,omitempty"`
	Command   string           `json:"command,omitempty"`
	Host      string           `json:"host,omitempty"`
	OSRelease string           `json:"os_release,omitempty"`
	Arch      string           `json:"arch,omitempty"`
	CPU       string           `json:"cpu,omitempty"`
	CPUs      uint32           `json:"cpus,omitempty"`
	Start     string           `json:"start,omitempty"` // RFC 3339, of the first sample
	Duration  int64            `json:"duration_ns"`     // from the first sample to the last
	Events    []Event          `json:"events"`
	Features  []string         `json:"features,omitempty"`
	Records   []RecordCount    `json:"records,omitempty"`
	Lost      uint64           `json:"lost_samples"`
	Throttled uint64           `json:"throttled"`
	Samples   uint64           `json:"samples"`
	Stacks    int              `json:"stacks"`
	Locations int              `json:"locations"`
	Objects   []CapturedObject `json:"objects"`
	Programs  []Program        `json:"bpf_programs,omitempty"`
	Usage     *BPFUsage        `json:"bpf_usage,omitempty"`
	Bundle    *Bundle          `json:"bundle,omitempty"`
	StackMap  *StackMap        `json:"stack_map,omitempty"`
	Copied    *advice.Copied   `json:"copied_stacks,omitempty"`
	Callers   *advice.Callers  `json:"callers,omitempty"` // if stacks were checked
	Warnings  []string         `json:"warnings,omitempty"`

	damaged bool
}

// Event describes a perf event, or the values of another kind of capture.
type Event struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"`
	Samples uint64 `json:"samples"`
	Weight  uint64 `json:"weight"`
	Period  uint64 `json:"period,omitempty"`       // if it was fixed
	Freq    uint64 `json:"frequency_hz,omitempty"` // if that was
	// Labels are the words of labels that samples have of what they access.
	Labels []string `json:"labels,omitempty"`
}

// RecordCount counts the records of a type.
type RecordCount struct {
	Type  string `json:"type"`
	Count uint64 `json:"count"`
}

// CapturedObject is an object that stacks run through.
type CapturedObject struct {
	BuildID   string `json:"build_id,omitempty"`
	Kind      string `json:"kind"`
	IDFrom    string `json:"build_id_from,omitempty"`
	Path      string `json:"path,omitempty"`
	Locations int    `json:"locations"`
}

// newCapture collects a description from the folded profile and, for perf.data, from the
// file's own header.
func newCapture(ctx context.Context, path string, c *input.Capture) (*Capture, error) {
	p, err := c.Profile(ctx)
	if err != nil {
		return nil, err
	}
	info := &Capture{
		File: path, Kind: c.Kind(), Size: c.Size(),
		Recorder: p.Meta.Recorder, Command: p.Meta.Command, Host: p.Meta.Host,
		OSRelease: p.Meta.OSRelease, Arch: p.Meta.Arch, Duration: p.Meta.Duration,
		Lost: p.Stats.Lost, Throttled: p.Stats.Throttled, Samples: p.Stats.Samples,
		Stacks: p.DistinctStacks(), Locations: len(p.Locations),
		Events: eventsOf(p), Objects: objectsOf(p), Programs: programsOf(path, c),
		StackMap: newStackMap(c.Stacks()), Copied: advice.NewCopied(&p.Stats.Copied),
		Callers: advice.NewCallers(&p.Stats.Callers),
	}
	if p.Meta.StartNanos != 0 {
		info.Start = time.Unix(0, p.Meta.StartNanos).UTC().Format(time.RFC3339Nano)
	}
	for name, n := range p.Stats.RecordTypes {
		info.Records = append(info.Records, RecordCount{name, n})
	}
	slices.SortFunc(info.Records, func(a, b RecordCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Type, b.Type))
	})
	if info.Bundle, err = newBundle(c.Bundle()); err != nil {
		info.Warnings, info.damaged = append(info.Warnings, err.Error()), true
	}
	programs, _ := c.Programs() // their damage is in the profile's warnings
	if info.Usage, err = NewBPFUsage(c.Bundle(), programs); err != nil {
		info.Warnings, info.damaged = append(info.Warnings, err.Error()), true
	}
	for _, w := range p.Stats.Warnings {
		if strings.HasSuffix(w.Text, input.NoSamples) {
			continue // none is requested here
		}
		info.Warnings = append(info.Warnings, w.Text)
		info.damaged = info.damaged || w.Partial
	}
	if f := c.PerfData(); f != nil {
		info.addHeader(f)
	}
	return info, nil
}

func (info *Capture) addHeader(f *perfdata.File) {
	info.ByteOrder = byteOrder(f.BigEndian)
	info.CPU, info.CPUs = f.Features.CPUDesc, f.Features.CPUsOnline
	for x := range perfdata.Feature(math.MaxUint8) {
		if f.Features.Has(x) {
			info.Features = append(info.Features, x.String())
		}
	}
	for _, ev := range f.Events {
		i := slices.IndexFunc(info.Events, func(e Event) bool { return e.Name == ev.Name })
		if i < 0 {
			continue
		}
		if ev.Attr.Has(perfdata.FlagFreq) {
			info.Events[i].Freq = ev.Attr.SamplePeriod
		}
		info.Events[i].Labels = accessLabels(&ev.Attr)
	}
}

// accessLabels returns the words of the labels that samples of an event have of accesses.
func accessLabels(a *perfdata.Attr) (list []string) {
	if a.DataAddresses() {
		list = append(list, ingest.AddressTag)
	}
	if a.SampleType&perfdata.SampleDataSrc != 0 {
		list = append(list, ingest.MemoryTag)
	}
	if a.SampleType&(perfdata.SampleWeight|perfdata.SampleWeightStruct) != 0 {
		list = append(list, ingest.LatencyTag)
	}
	return list
}

func eventsOf(p *ingest.Profile) []Event {
	out := make([]Event, len(p.Events))
	for i, ev := range p.Events {
		out[i] = Event{Name: ev.Name, Unit: ev.Unit, Period: ev.Period}
	}
	for _, s := range p.Samples {
		out[s.Event].Samples += s.Count
		out[s.Event].Weight += s.Weight
	}
	return out
}

func objectsOf(p *ingest.Profile) []CapturedObject {
	out := make([]CapturedObject, len(p.Objects))
	for i := range p.Objects {
		o := &p.Objects[i]
		out[i] = CapturedObject{Kind: o.Kind.String(), Path: o.File.Path}
		if !o.ID.IsZero() {
			out[i].BuildID, out[i].IDFrom = o.ID.String(), o.IDSource.String()
		}
	}
	for _, l := range p.Locations {
		out[l.Object].Locations++
	}
	return out
}

// Damaged reports whether a part of the capture could not be read.
func (info *Capture) Damaged() bool { return info.damaged }

// WriteText implements Info.
func (info *Capture) WriteText(w io.Writer) error {
	t := table.New().Wrapped()
	t.Row("file", table.Join(", ", info.File, table.Bytes(info.Size)))
	t.Row("kind", table.Join(", ", info.Kind, info.ByteOrder))
	t.Field("recorder", info.Recorder)
	t.Field("command", info.Command)
	t.Field("host", table.Join(", ", info.Host, info.Arch, info.OSRelease))
	if info.CPUs > 0 {
		t.Row("cpus", table.Join(" × ", fmt.Sprint(info.CPUs), info.CPU))
	}
	if info.Start != "" || info.Duration > 0 {
		t.Field("began", info.Start)
		t.Row("lasted", time.Duration(info.Duration).String())
	}
	info.Bundle.rows(t)
	info.Usage.rows(t)
	for _, e := range info.Events {
		t.Row("event", e.text())
	}
	t.Row("samples", fmt.Sprintf("%d, in %d distinct stacks of %d distinct locations",
		info.Samples, info.Stacks, info.Locations))
	if info.Copied != nil {
		t.Row("stacks", info.Copied.String())
	}
	if info.Callers != nil {
		t.Row("callers", info.Callers.String())
	}
	info.StackMap.rows(t)
	t.Field("records", info.recordText())
	if info.Lost+info.Throttled > 0 {
		t.Row("lost", fmt.Sprintf("%d samples, throttled %d times", info.Lost, info.Throttled))
	}
	for _, text := range info.Warnings {
		t.Row("warning", text)
	}
	if err := t.Print(w); err != nil {
		return err
	}
	if err := info.writeObjects(w); err != nil {
		return err
	}
	if err := info.Bundle.writeTables(w); err != nil {
		return err
	}
	if err := info.Usage.write(w); err != nil {
		return err
	}
	return writePrograms(w, info.Programs)
}

// writeObjects writes a row for each object.
func (info *Capture) writeObjects(w io.Writer) error {
	if len(info.Objects) == 0 {
		return nil
	}
	o := table.New(true).Names(3, 4).Without(100, 3)
	o.Row("LOCATIONS", "KIND", "BUILD ID", "FROM", "OBJECT")
	for _, c := range info.Objects {
		o.Row(fmt.Sprint(c.Locations), c.Kind,
			cmp.Or(c.BuildID, "-"), cmp.Or(c.IDFrom, "-"), cmp.Or(c.Path, "-"))
	}
	return o.Print(w)
}

func (e *Event) text() string {
	rate := ""
	switch {
	case e.Freq > 0:
		rate = fmt.Sprintf("%d Hz", e.Freq)
	case e.Period > 0:
		rate = fmt.Sprintf("every %d", e.Period)
	}
	labels := ""
	if len(e.Labels) > 0 {
		labels = "labels " + strings.Join(e.Labels, ", ")
	}
	return table.Join(", ", e.Name, rate,
		fmt.Sprintf("%d samples, weight %d %s", e.Samples, e.Weight, e.Unit), labels)
}

func (info *Capture) recordText() string {
	var parts []string
	for _, r := range info.Records {
		parts = append(parts, fmt.Sprintf("%d %s", r.Count, r.Type))
	}
	return strings.Join(parts, ", ")
}
