package sampler

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"symbolize/ingest/record/sys"
)

// attached is the attachment of programs to their events.
type attached struct {
	fds   []int
	links []link.Link
}

func (a *attached) attach(p *ebpf.Program, o *Options) error {
	var err error
	var l link.Link
	switch e := &o.Event; e.Kind {
	case Clock:
		return a.clocks(p, o.Frequency)
	case Tracepoint:
		l, err = link.Tracepoint(e.Group, e.Name, p, nil)
	case OffCPU:
		l, err = link.Tracepoint("sched", "sched_switch", p, nil)
	case Uprobe:
		var file *link.Executable
		if file, err = link.OpenExecutable(e.Path); err == nil {
			l, err = file.Uprobe(e.Function, p, nil)
		}
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: no such event: %w", o.Event, err)
	case err != nil:
		return fmt.Errorf("%s: %w", o.Event, err)
	}
	a.links = append(a.links, l)
	return nil
}

// clocks opens a clock on each CPU. CPUs that go offline meanwhile are skipped.
func (a *attached) clocks(p *ebpf.Program, frequency int) error {
	cpus, err := sys.OnlineCPUs()
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample: clockPeriod(frequency), // the period of a clock is in ns
		Bits:   unix.PerfBitDisabled,
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	for _, cpu := range cpus {
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ENODEV) {
			continue
		}
		if err != nil {
			return os.NewSyscallError("perf_event_open", err)
		}
		a.fds = append(a.fds, fd)
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, p.FD()); err != nil {
			return os.NewSyscallError("PERF_EVENT_IOC_SET_BPF", err)
		}
	}
	for _, fd := range a.fds {
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return os.NewSyscallError("PERF_EVENT_IOC_ENABLE", err)
		}
	}
	return nil
}

func (a *attached) detach() {
	for _, fd := range a.fds {
		unix.Close(fd)
	}
	a.fds = nil
	for _, l := range a.links {
		l.Close()
	}
	a.links = nil
}

// readSwitchLayout reads the formats of sched:sched_switch and, for wakers, sched:sched_waking.
func readSwitchLayout(wakers bool) (l switchLayout, err error) {
	err = readFields("sched_switch", tracepointField{"next_pid", 4, &l.nextPID},
		tracepointField{"prev_state", 8, &l.prevState})
	if err == nil && wakers {
		err = readFields("sched_waking", tracepointField{"pid", 4, &l.woken})
	}
	return l, err
}

// tracepointField is a field of a tracepoint, its size in bytes, and where its offset goes.
type tracepointField struct {
	name string
	size int
	to   *int16
}

// readFields finds fields of a tracepoint of the scheduler.
func readFields(name string, fields ...tracepointField) error {
	var err error
	for _, dir := range sys.TracingDirs {
		var b []byte
		path := dir + "/events/sched/" + name + "/format"
		if b, err = os.ReadFile(path); err == nil {
			return parseFields(path, string(b), fields...)
		}
	}
	return fmt.Errorf("tracepoint sched:%s: %w", name, err)
}

// parseFields finds fields: "field:pid_t next_pid; offset:56; size:4; signed:1;".
func parseFields(path, text string, fields ...tracepointField) (err error) {
	for _, f := range fields {
		if *f.to, err = fieldOffset(text, f.name, f.size); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// maxRecord is the largest size of a tracepoint record, which bounds offsets.
const maxRecord = 1 << 12

// fieldOffset finds the field with this name and size in a tracepoint's format.
func fieldOffset(text, name string, size int) (int16, error) {
	for line := range strings.Lines(text) {
		if !strings.Contains(line, " "+name+";") {
			continue
		}
		_, rest, _ := strings.Cut(line, "offset:")
		number, _, _ := strings.Cut(rest, ";")
		n, err := strconv.Atoi(number)
		if err == nil && n >= 0 && n < maxRecord &&
			strings.Contains(line, fmt.Sprintf("size:%d;", size)) {
			return int16(n), nil
		}
	}
	return 0, fmt.Errorf("no field %s of %d bytes", name, size)
}
