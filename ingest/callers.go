package ingest

import (
	"cmp"
	"slices"
	"strings"

	"symbolize/buildid"
)

// CallerReason is why the caller of a function in a stack of frame pointers is not proven.
type CallerReason uint8

// The reasons.
const (
	NoCallReason   CallerReason = iota
	CallsUnknown                // the object has no table of calls
	RuleUnknown                 // no unwind rule covers the address
	CallsAmbiguous              // the function was called where it calls: a recursion, or tail calls
	RegisterUsed                // the code uses the frame pointer for other data: the stack ends
	CalledNothing               // no call ends at the next address: the stack ends
	CallerSkipped               // the function has no frame, and several callers are possible
	endOfCallerReasons
)

// String returns the reason in lower case.
func (r CallerReason) String() string {
	return [endOfCallerReasons]string{"none", "calls not indexed", "no unwind rule", "recursion or tail call",
		"register holds data", "no call there", "function without frame"}[r]
}

// UnprovenCallers counts the functions of an object whose callers are not proven, for one reason.
type UnprovenCallers struct {
	Kind   ObjectKind
	ID     buildid.ID
	Path   string
	Reason CallerReason
	Pairs  uint64 // of a function and its caller, of all samples
}

// compare orders counts by all but the count.
func (u *UnprovenCallers) compare(o *UnprovenCallers) int {
	return cmp.Or(strings.Compare(u.Path, o.Path), u.ID.Compare(o.ID), cmp.Compare(u.Kind, o.Kind),
		cmp.Compare(u.Reason, o.Reason))
}

// AddUnproven adds counts. Unproven is sorted by all but the count, each once.
func (c *CallerStats) AddUnproven(list []UnprovenCallers) {
	all := slices.Concat(c.Unproven, list)
	slices.SortStableFunc(all, func(a, b UnprovenCallers) int { return a.compare(&b) })
	c.Unproven = all[:0]
	for i := range all {
		if n := len(c.Unproven); n > 0 && c.Unproven[n-1].compare(&all[i]) == 0 {
			c.Unproven[n-1].Pairs += all[i].Pairs
			continue
		}
		c.Unproven = append(c.Unproven, all[i])
	}
}
