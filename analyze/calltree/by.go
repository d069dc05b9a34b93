package calltree

import (
	"fmt"
	"slices"
	"strings"
)

// By is a granularity: the attribute of frames or samples that makes a node.
type By uint8

// The granularities. Those of frames are ordered before those of samples.
const (
	Function By = iota
	File
	Line
	Object
	BuildID
	Comm
	PID
	TID
	CPU
	Event
	Label // all labels that samples carry: comm, pid, tid and cpu
)

// byWords holds the words of the granularities, in their order.
var byWords = []string{Function: "function", File: "file", Line: "line", Object: "object",
	BuildID: "buildid", Comm: "comm", PID: "pid", TID: "tid", CPU: "cpu", Event: "event",
	Label: "label"}

// Words returns the words that ParseBy knows.
func Words() []string { return slices.Clone(byWords) }

// String returns the word of a granularity.
func (b By) String() string { return byWords[b] }

// OfSample reports whether a granularity is an attribute of samples and not of frames.
func (b By) OfSample() bool { return b >= Comm }

// ParseBy parses a comma-separated list of granularities: any number of attributes of samples,
// which become the outermost frames in this order, and at most one attribute of frames.
func ParseBy(s string) ([]By, error) {
	var list []By
	ofFrames := 0
	for word := range strings.SplitSeq(s, ",") {
		i := slices.Index(byWords, strings.TrimSpace(word))
		if i < 0 {
			return nil, fmt.Errorf("%q is none of %s", word, strings.Join(byWords, ", "))
		}
		b := By(i)
		if !b.OfSample() {
			ofFrames++
		}
		if slices.Contains(list, b) || ofFrames > 1 {
			return nil, fmt.Errorf("%q: one of function, file, line, object, buildid, and each "+
				"of the others once", s)
		}
		list = append(list, b)
	}
	return list, nil
}
