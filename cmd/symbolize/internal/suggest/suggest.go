// Package suggest leads users of other tools, and mistyped words, to ours.
package suggest

import (
	"maps"
	"slices"
	"strings"
)

// Commands are commands of perf, pprof, binutils and FlameGraph, with ours for each task.
var Commands = map[string]string{
	"archive":       "index --for CAPTURE",
	"buildid-cache": "index PATH",
	"buildid-list":  "info CAPTURE",
	"data":          "resolve -o x.pb.gz CAPTURE",
	"evlist":        "info CAPTURE",
	"record":        "capture --stacks -o FILE -- COMMAND",
	"sched":         "capture --stacks --off-cpu -o FILE -- COMMAND",
	"script":        "resolve --format script CAPTURE",
	"trace":         "capture --stacks --event GROUP:TRACEPOINT -o FILE",

	"prog": "annotate CAPTURE PROGRAM",

	"disasm":  "annotate CAPTURE FUNCTION",
	"http":    "web PROFILE",
	"list":    "annotate CAPTURE FUNCTION",
	"proto":   "resolve -o x.pb.gz CAPTURE",
	"raw":     "info PROFILE",
	"svg":     "flamegraph -o x.svg PROFILE",
	"text":    "top PROFILE",
	"traces":  "resolve --format script PROFILE",
	"weblist": "annotate -o x.html CAPTURE FUNCTION",

	"addr2line":       "lookup -e FILE ADDR",
	"difffolded":      "diff --format folded BASE NEW",
	"flame":           "flamegraph -o x.html CAPTURE",
	"llvm-symbolizer": "lookup -e FILE ADDR",
	"stackcollapse":   "resolve --format folded CAPTURE",
	"symbolizer":      "lookup -e FILE ADDR",
}

// flags are flags of perf and pprof that no command of ours has under this name, with
// the flag or command that gives the same result. A key with two words is for one command.
var flags = map[string]string{
	"F":             "perf record -F and `symbolize capture --stacks -F` set the frequency; --format json has all columns",
	"G":             "`symbolize tree --callers` and `symbolize flamegraph --reverse` begin at the sampled functions",
	"S":             "--focus '^NAME$' selects the samples of a function",
	"g":             callGraph,
	"report format": onePage,
	"web format":    onePage,
	"tui format":    "`symbolize top`, `symbolize tree` and `symbolize annotate` print what tui shows, as text and JSON",
	"filter format": "filter prints its input, with names; `symbolize lookup --format json` names single addresses",
	"lookup o":      "lookup answers each line of its input at once, on standard output",
	"annotate s":    functionCode,
	"diff":          "--base FILE draws the difference from FILE",
	"disasm":        functionCode,
	"weblist":       functionCode,
	"peek":          "`symbolize peek FUNCTION CAPTURE` prints callers and callees",
	"percent-limit": "--min-share PCT leaves out lighter ones",
	"C":             "`symbolize btf FILE TYPE` prints a type as C, with offsets and sizes",
	"e":             "an event is --event EVENT; `symbolize lookup -e FILE ADDR` looks addresses up",
	"sizes":         "`symbolize btf FILE` lists the types with their sizes",
	"call-graph":    callGraph,
	"children":      "top has both columns, flat and cum: --sort cum sorts by the second",
	"comms":         "--comm NAME selects threads by name",
	"cum":           "--sort cum sorts by it",
	"diff_base":     "`symbolize diff BASE NEW` compares profiles",
	"dso":           "--by object adds up by object, --focus NAME selects one",
	"dsos":          "--by object adds up by object, --focus NAME selects one",
	"flat":          "--sort flat sorts by it",
	"functions":     "--by function adds up by function",
	"http":          "`symbolize web` serves a page; for those of pprof: go tool pprof -http",
	"i":             "captures are arguments, without a flag",
	"input":         "captures are arguments, without a flag",
	"list":          functionCode,
	"lines":         "--by line adds up by line",
	"no-children":   "--sort flat sorts by the samples in functions themselves",
	"nodecount":     "-n N prints the N heaviest",
	"nodefraction":  "--min-share PCT leaves out lighter ones",
	"sample_index":  "--event EVENT chooses the event",
	"stdio":         "`symbolize top` prints text; report writes a page",
	"sort":          otherAttributes,
	"svg":           "`symbolize flamegraph -o x.svg` draws",
	"text":          "`symbolize top` prints text",
	"top":           "`symbolize top` prints the heaviest functions",
	"traces":        "`symbolize resolve --format script` prints each stack",
}

const (
	onePage         = "it is one HTML page; `symbolize top`, `symbolize tree` and `symbolize missing` print text and JSON"
	callGraph       = "`symbolize tree` and `symbolize flamegraph` show who calls whom"
	functionCode    = "`symbolize annotate CAPTURE FUNCTION` prints the code of functions"
	otherAttributes = "--by adds up by other attributes: object (perf's dso), function (sym), comm, pid, cpu, line (srcline)"
)

// values are values of flags of perf and pprof that ours do not accept: by flag and word, or by
// flag for all words. A key with two words is for one command.
var values = map[string]string{
	"sort":             otherAttributes,
	"by=package":       "--by object and --by file are near; --focus '^net/http[.]' selects a package",
	"by=dso":           "--by object adds up by object",
	"by=sym":           "--by function adds up by function",
	"by=symbol":        "--by function adds up by function",
	"by=srcline":       "--by line adds up by line",
	"diff format=html": "`symbolize flamegraph --base BASE -o diff.html NEW` writes a page",
	"diff format=svg":  "`symbolize flamegraph --base BASE -o diff.svg NEW` draws",
	"top format=html":  "`symbolize report -o x.html CAPTURE` writes a page",
	"tree format=html": "`symbolize report -o x.html CAPTURE` writes a page",
}

// Flag returns the hint for a flag of other tools that a command of ours does not have, "" for none.
func Flag(command, flag string) string {
	if hint := flags[command+" "+flag]; hint != "" {
		return hint
	}
	return flags[flag]
}

// Value returns the hint for a value of a flag that a command does not accept, "" for none. Of a list
// with commas its first word counts.
func Value(command, flag, value string) string {
	word, _, _ := strings.Cut(value, ",")
	for _, key := range []string{command + " " + flag + "=" + word, flag + "=" + word, flag} {
		if hint := values[key]; hint != "" {
			return hint
		}
	}
	return ""
}

// Hints returns all hints, for tests.
func Hints() (list []string) {
	for _, hints := range []map[string]string{flags, values} {
		list = slices.AppendSeq(list, maps.Values(hints))
	}
	for _, ours := range Commands {
		list = append(list, "`symbolize "+ours+"`")
	}
	slices.Sort(list)
	return list
}

// maxNear is how many near names a suggestion has.
const maxNear = 3

// Nearest returns the names that were meant by a word, at most three: those that contain it in
// other letters of its case, otherwise those with the smallest distance, which must be less than a
// third of the word. Of equal names the first ones are returned.
func Nearest(word string, names []string) (near []string) {
	low := strings.ToLower(word)
	for _, name := range names {
		if len(near) < maxNear && strings.Contains(strings.ToLower(name), low) {
			near = append(near, name)
		}
	}
	if len(near) > 0 {
		return near
	}
	best := len(word)/3 + 1
	for _, name := range names {
		d := Distance(low, strings.ToLower(name))
		if i := strings.LastIndexAny(name, ":."); i >= 0 { // "run" of "app::run"
			d = min(d, Distance(low, strings.ToLower(name[i+1:])))
		}
		if d < best {
			best, near = d, nil
		}
		if d == best && d <= len(word)/3 && len(near) < maxNear {
			near = append(near, name)
		}
	}
	return near
}

// Distance is the number of letters to insert, remove, replace or exchange with their neighbour
// that makes b of a.
func Distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
