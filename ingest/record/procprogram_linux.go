package record

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/record/sampler"
)

// program identifies the program that a process runs now, by its /proc/PID/stat, in the
// form of sampler.ProgramFacts; 0 if it cannot be read.
func (p *processes) program(pid int32) uint64 {
	var room [maxStat]byte
	b, err := readSome(p.path(pid, "stat"), room[:0], maxStat)
	if err != nil {
		return 0
	}
	facts, ok := parseStat(b)
	if !ok {
		return 0
	}
	p.started(pid, facts.StartTicks)
	facts.StartTicks -= p.bootTicks
	return facts.ID()
}

// maxStat is above the length of /proc/PID/stat: 52 numbers, and a name.
const maxStat = 2048

// parseStat takes the facts out of a /proc/PID/stat (proc_pid_stat(5)).
func parseStat(b []byte) (f sampler.ProgramFacts, ok bool) {
	i := bytes.LastIndexByte(b, ')') // the name may have any bytes
	if i < 0 {
		return f, false
	}
	const firstField = 3
	fields := bytes.Fields(b[i+1:])
	for _, x := range []struct {
		field int
		to    *uint64
	}{{22, &f.StartTicks}, {27, &f.EndCode}, {28, &f.StartStack}, {47, &f.StartBrk}} {
		if len(fields) <= x.field-firstField {
			return f, false
		}
		var err error
		if *x.to, err = strconv.ParseUint(string(fields[x.field-firstField]), 10, 64); err != nil {
			return f, false
		}
	}
	return f, true
}

// bootTicks returns how far the boot of this process's time namespace is from that of the
// kernel, in ticks, by /proc/self/timens_offsets: starttime counts from it.
func bootTicks(path string) uint64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0 // a kernel without such namespaces
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "boottime" {
			continue
		}
		sec, err1 := strconv.ParseInt(f[1], 10, 64)
		nsec, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 == nil && err2 == nil {
			return uint64(sec*100 + nsec/10_000_000)
		}
	}
	return 0
}

// programs lists the programs of a process that mappings were kept of: the last first, the others
// in the order in which they came.
func (p *processes) programs(pid int32) (list []uint64) {
	versions := p.kept[pid]
	if len(versions) == 0 {
		return nil
	}
	list = append(list, versions[len(versions)-1].program)
	for _, v := range versions {
		if !slices.Contains(list, v.program) {
			list = append(list, v.program)
		}
	}
	return list
}
