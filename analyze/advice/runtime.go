package advice

import (
	"strings"

	"symbolize/ingest"
)

// runtimes are programs that compile code while they run: files that each has mapped, and how it is
// made to list its functions. One that many hosts run for other reasons comes last.
var runtimes = []struct{ file, record string }{
	{"libjvm.so", "perf record -g java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit " +
		"-XX:+PreserveFramePointer"},
	{"java", "perf record -g java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit " +
		"-XX:+PreserveFramePointer"},
	{"libcoreclr.so", "DOTNET_PerfMapEnabled=1 perf record -g dotnet"},
	{"dotnet", "DOTNET_PerfMapEnabled=1 perf record -g dotnet"},
	{"node", "perf record -k mono -g node --perf-prof"},
	{"libnode.so", "perf record -k mono -g node --perf-prof"},
	{"python", "from Python 3.12 on: perf record -g python3 -X perf"}, // 3.11 ignores it
}

// Runtime returns the name of a file by which anonymousMemory knows which program compiled code: of
// the program that has most samples, else of any that was sampled; "" if it knows none.
func Runtime(p *ingest.Profile) string {
	for i := range runtimes {
		if file := runtimes[i].file; strings.HasPrefix(ingest.BaseName(p.Meta.MainProgram), file) {
			return file
		}
	}
	for i := range runtimes {
		for k := range p.Objects {
			if strings.HasPrefix(ingest.BaseName(p.Objects[k].File.Path), runtimes[i].file) {
				return runtimes[i].file
			}
		}
	}
	return ""
}

// anonymousMemory is how a run-time compiler is made to leave the names of its functions. A memory
// file may be a program that was executed: then it has a build ID, if those were recorded.
func anonymousMemory(c *Case) string {
	if !c.BuildIDs && strings.HasPrefix(c.Object.File.Path, "/memfd:") {
		return "perf record --buildid-mmap"
	}
	for i := range runtimes {
		if runtimes[i].file == c.Runtime {
			return runtimes[i].record
		}
	}
	return "the program that makes this code has to list it: in /tmp/perf-PID.map, or in a jitdump " +
		"file with perf record -k mono"
}
