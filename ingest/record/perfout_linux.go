package record

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/record/sys"
)

// perfOut is the perf.data of a bundle while it is written: a temporary file without a name.
type perfOut struct {
	file *os.File
	w    *perfdata.Writer
}

// newPerfOut begins a file whose only event represents all that write into the rings:
// their records look alike. Their times are of CLOCK_MONOTONIC, or of perf's clock.
func newPerfOut(ids []uint64, monotonic bool) (*perfOut, error) {
	f, err := os.CreateTemp("", "symbolize-capture-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	const dummy = 9 // PERF_COUNT_SW_DUMMY
	event := perfdata.Event{
		Attr: perfdata.Attr{Type: perfdata.AttrSoftware, Config: dummy, SamplePeriod: 1,
			SampleType: sys.SampleType, Flags: kernelFlags | processFlags | perfdata.FlagSampleIDAll},
		Name: "dummy:HG", IDs: ids,
	}
	if monotonic {
		event.Attr.Flags |= perfdata.FlagUseClockID
		event.Attr.ClockID = unix.CLOCK_MONOTONIC
	}
	w, err := perfdata.NewWriter(f, bigEndian, []perfdata.Event{event})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &perfOut{file: f, w: w}, nil
}

func (o *perfOut) close() { o.file.Close() }

// write adds a record of a ring. An error stays in the writer until finish.
func (o *perfOut) write(rec []byte) { _ = o.w.WriteRecord(rec) }

// kernelMap writes where the kernel's text lies, as perf does it.
func (o *perfOut) kernelMap(k *kernelFacts) {
	if k.text == 0 || k.end <= k.text {
		return
	}
	_ = o.w.WriteMmap(&perfdata.Mmap{PID: -1, Addr: k.text, Len: k.end - k.text, PgOff: k.text,
		Filename: []byte(kernelName + "_text")}, perfdata.CPUModeKernel, perfdata.SampleID{})
}

// kernelName is perf's name of the kernel's mapping; a symbol's name follows.
const kernelName = "[kernel.kallsyms]"

// finish writes the features.
func (o *perfOut) finish(s *session, p *programs) error {
	m := &s.manifest
	o.w.SetString(perfdata.FeatureHostname, m.Host)
	o.w.SetString(perfdata.FeatureOSRelease, m.OSRelease)
	o.w.SetString(perfdata.FeatureArch, m.Machine)
	if id, err := buildid.Parse(m.KernelBuildID); err == nil {
		o.w.SetBuildIDs([]perfdata.BuildIDEntry{{ID: id, PID: -1, CPUMode: perfdata.CPUModeKernel,
			Filename: kernelName}})
	}
	for _, f := range []struct {
		feature perfdata.Feature
		spool   *spool
	}{{perfdata.FeatureBPFProgInfo, p.infos}, {perfdata.FeatureBPFBTF, p.blobs}} {
		if len(f.spool.entries) > 0 {
			o.w.SetFeatureFrom(f.feature, f.spool.section())
		}
	}
	return o.w.Close()
}

// addTo adds the finished file to a bundle.
func (o *perfOut) addTo(w *bundle.Writer) error {
	if _, err := o.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.AddReader(bundle.PerfDataName, o.file)
}
