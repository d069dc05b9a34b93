package main

import "symbolize/ingest"

// hintLive is a reason that a recorder brings about, and the command of its hint with what a user
// adds to it.
type hintLive struct {
	name   string
	reason ingest.Reason
	tools  string // that it needs
	before string // of the shell
	missed string // arguments of missing then
	hint   string
	follow string // HINT is the hint
	misses string // arguments of missing then
}

// hintsLive are run in a directory that has the programs of fixtures/src.
var hintsLive = []hintLive{
	{name: "kernel hidden", reason: ingest.KernelHidden, missed: "a.data",
		before: "echo 2 >/proc/sys/kernel/kptr_restrict; perf record -q -g -F 999 -o a.data " + hintCopy,
		hint:   "as root: echo 0 > /proc/sys/kernel/kptr_restrict && perf record --buildid-mmap -a -g",
		follow: "HINT -q -F 999 -o b.data " + hintCopy, misses: "b.data"},
	{name: "node", reason: ingest.AnonymousMemory, tools: "node",
		before: "perf record -q -g -o a.data node hot.js", missed: "a.data",
		hint:   "perf record -k mono -g node --perf-prof",
		follow: "HINT hot.js >out.txt", misses: "perf.data"},
	{name: "java", reason: ingest.AnonymousMemory, tools: "java",
		before: "perf record -q -g -o a.data java " + hintKeys + "a.p12", missed: "a.data",
		hint: "perf record -g java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit " +
			"-XX:+PreserveFramePointer",
		follow: "HINT " + hintKeys + "b.p12 >out.txt", misses: "perf.data"},
	{name: "short copies of the stack", reason: ingest.StackTruncated, tools: "gcc",
		before: "perf record -q --call-graph dwarf,1024 -e cpu-clock:u -F 199 -o a.data ./bare",
		missed: "a.data", hint: "perf record --call-graph dwarf,65528",
		follow: "HINT -q -e cpu-clock:u -F 199 -o b.data ./bare", misses: "b.data"},
	{name: "the longest copies", reason: ingest.StackTruncated, tools: "gcc",
		before: "perf record -q --call-graph dwarf,65528 -e cpu-clock:u -F 99 -o a.data ./altstack deep",
		missed: "a.data",
		hint: "gcc -fno-omit-frame-pointer; as root: echo 1024 > /proc/sys/kernel/perf_event_max_stack && " +
			"perf record --call-graph fp", // it is built so
		follow: "HINT -q -e cpu-clock:u -F 99 -o b.data ./altstack deep", misses: "b.data"},
	{name: "a signal's own stack", reason: ingest.OtherStack, tools: "gcc",
		before: "perf record -q --call-graph dwarf -e cpu-clock:u -F 1999 -o a.data ./altstack",
		missed: "a.data", hint: "perf record --call-graph fp",
		follow: "HINT -q -e cpu-clock:u -F 1999 -o b.data ./altstack", misses: "b.data"},
	{name: "built with frame pointers", reason: ingest.OutsideMapping, tools: "gcc",
		before: "perf record -q -g -e cpu-clock:u -F 499 -o a.data ./omit", missed: "a.data",
		hint: hintOutside,
		follow: `gcc=$(echo "HINT" | sed 's/.*: \(gcc [^,]*\),.*/\1/') && $gcc -O2 -g -o omit2 omit.c &&
			perf record -q -g -e cpu-clock:u -F 499 -o b.data ./omit2`,
		misses: "b.data"},
	{name: "with copies of the stack", reason: ingest.OutsideMapping, tools: "gcc",
		before: "perf record -q -g -e cpu-clock:u -F 499 -o a.data ./omit", missed: "a.data",
		hint: hintOutside,
		follow: `perf=$(echo "HINT" | sed 's/.*, or //') &&
			$perf -q -e cpu-clock:u -F 499 -o b.data ./omit`,
		misses: "b.data"},
	{name: "a full stack map", reason: ingest.StackLost, tools: "gcc go",
		before: "mkdir dump && ./stackrun -o dump -freq 299 -buckets 2 ./altstack",
		missed: "--counts dump/bare.raw --key user_stack_id:0,kernel_stack_id:4,tgid:8,pid:12,comm:16 " +
			"dump/stacks.raw",
		hint:   "symbolize capture -o stacks.data --stacks",
		follow: "HINT -- ./altstack", misses: "stacks.data"},
}

const (
	hintCopy = "dd if=/dev/zero of=/dev/null bs=64k count=50000 2>/dev/null"
	hintKeys = "-m java.base/sun.security.tools.keytool.Main -genkeypair -alias a -keyalg RSA " +
		"-keysize 3072 -dname CN=a -storepass secret -keystore "
	hintOutside = "code without frame pointers: gcc -fno-omit-frame-pointer, or perf record " +
		"--call-graph dwarf"
)
