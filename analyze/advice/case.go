package advice

import (
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Case is unnamed code, with all that is known of it.
type Case struct {
	Reason ingest.Reason
	Object *ingest.Object

	// Captures are the paths of the captures that have it, for the command line.
	Captures []string
	// BuildIDs: their records of mappings have build IDs, as of `perf record --buildid-mmap`.
	BuildIDs bool
	// Counted: their stacks were counted by `symbolize capture --stacks`.
	Counted bool
	// Searched: the files of this host were looked through by build ID, and the object is not there.
	Searched bool
	// Runtime is the result of the function of this name for their profile.
	Runtime string
	// Copied is how many bytes of each user's stack they were to have, as of `--call-graph
	// dwarf,BYTES`; 0 without copies.
	Copied uint64
	// Of a frame at which copied stacks end: the names of the programs in Go that they end in, and
	// whether they end in others, too.
	GoPrograms []string
	OtherCode  bool
	// SignalReturn: the code is where signal handlers return to.
	SignalReturn bool
}

// Step returns the step that gets the names of a case, "" where none does.
func (c *Case) Step() string {
	if int(c.Reason) < len(steps) && steps[c.Reason] != nil {
		return steps[c.Reason](c)
	}
	return ""
}

// steps has the step by reason.
var steps = [...]func(*Case) string{
	ingest.NotIndexed:       notIndexed,
	ingest.Stripped:         stripped,
	ingest.LayoutUnknown:    layoutUnknown,
	ingest.OtherLayout:      otherLayout,
	ingest.Mismatch:         func(c *Case) string { return c.fetch() },
	ingest.NoBuildID:        noBuildID,
	ingest.Ambiguous:        ambiguous,
	ingest.AnonymousMemory:  anonymousMemory,
	ingest.TextRemapped:     textRemapped,
	ingest.ImageNotCaptured: fixed(recordPrograms),
	ingest.KernelHidden:     kernelHidden,
	ingest.StackNotUnwound:  fixed(framePointers),
	ingest.StackTruncated:   stackTruncated,
	ingest.OtherStack:       fixed(framePointers),
	ingest.NoUnwindTable:    noUnwindTable,
	ingest.ChainBroken:      func(c *Case) string { return c.inGo("") },
	ingest.OutsideMapping:   outside,
	ingest.OutsideObject:    outside,
	ingest.GuestCode:        fixed("inside the virtual machine: perf record -a -g"),
	ingest.MapsNotSaved:     mapsNotSaved,
	ingest.ProcessGone:      recordAll, // its records have the mappings of all processes
	ingest.MapsNotRead:      recordAll,
	ingest.AddressReused:    addressReused,
	ingest.StackLost:        stackLost,
	ingest.TableDamaged:     tableDamaged,
}

func fixed(step string) func(*Case) string { return func(*Case) string { return step } }

func (c *Case) inKernel() bool { return c.Object.Domain() == ingest.KernelDomain }

// path returns the file's path as a word of the shell; "" if there is none, or if the file was
// deleted.
func (c *Case) path() string {
	if f := &c.Object.File; !f.Deleted && strings.HasPrefix(f.Path, "/") {
		return texts.ShellWord(f.Path)
	}
	return ""
}

// captures returns the captures as arguments, with a space in front; "" if none are known.
func (c *Case) captures() string {
	var b strings.Builder
	for _, p := range c.Captures {
		b.WriteString(" " + texts.ShellWord(p))
	}
	return b.String()
}
