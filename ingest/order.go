package ingest

import (
	"cmp"
	"slices"
	"strings"
)

// CompareFiles orders files by path, then by their other fields.
func CompareFiles(a, b *FileRef) int {
	return cmp.Or(
		strings.Compare(a.Path, b.Path),
		cmp.Compare(btoi(a.Deleted), btoi(b.Deleted)),
		cmp.Compare(a.Major, b.Major),
		cmp.Compare(a.Minor, b.Minor),
		cmp.Compare(a.Inode, b.Inode),
		cmp.Compare(a.Generation, b.Generation),
	)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// CompareSegments orders by Offset, then the longer first: its mapping was not cut short.
func CompareSegments(a, b SegmentRef) int {
	if c := cmp.Compare(a.Offset, b.Offset); c != 0 {
		return c
	}
	return cmp.Compare(b.Len, a.Len)
}

// CompareSamples is the order of Profile.Samples; it leaves out the values.
func CompareSamples(a, b Sample) int {
	if c := cmp.Compare(a.Event, b.Event); c != 0 {
		return c
	}
	if c := CompareLabels(&a, &b); c != 0 {
		return c
	}
	return cmp.Compare(a.Stack, b.Stack)
}

// CompareLabels orders samples by comm, process, thread, CPU and tags.
func CompareLabels(s, t *Sample) int {
	if c := cmp.Compare(s.Comm, t.Comm); c != 0 {
		return c
	}
	if c := cmp.Compare(s.PID, t.PID); c != 0 {
		return c
	}
	if c := cmp.Compare(s.TID, t.TID); c != 0 {
		return c
	}
	if c := cmp.Compare(s.CPU, t.CPU); c != 0 {
		return c
	}
	return cmp.Compare(s.Tags, t.Tags)
}

// SortFunctions returns the functions in the order of Names.Functions, without duplicates,
// and renumbers the frames that refer to them.
func SortFunctions(funcs []Function, frames []Frame) []Function {
	order := make([]FuncID, len(funcs))
	for i := range order {
		order[i] = FuncID(i)
	}
	slices.SortFunc(order, func(a, b FuncID) int { return compareFunctions(&funcs[a], &funcs[b]) })
	number := make([]FuncID, len(funcs))
	sorted := make([]Function, 0, len(funcs))
	for _, from := range order {
		if n := len(sorted); n == 0 || sorted[n-1] != funcs[from] {
			sorted = append(sorted, funcs[from])
		}
		number[from] = FuncID(len(sorted) - 1)
	}
	for i := range frames {
		frames[i].Func = number[frames[i].Func]
	}
	return sorted
}

func compareFunctions(a, b *Function) int {
	if c := cmp.Compare(a.Object, b.Object); c != 0 {
		return c
	}
	if c := cmp.Compare(a.SystemName, b.SystemName); c != 0 {
		return c
	}
	if c := cmp.Compare(a.File, b.File); c != 0 {
		return c
	}
	return cmp.Compare(a.StartLine, b.StartLine)
}

// CompareLocations is the order of Profile.Locations.
func CompareLocations(a, b Location) int {
	if c := cmp.Compare(a.Object, b.Object); c != 0 {
		return c
	}
	return cmp.Compare(a.Offset, b.Offset)
}
