package ingest

// Reason is the reason why a location has no name. The list is closed: every unresolved frame
// has exactly one, and each has the command that fixes it (analyze/hint).
type Reason uint8

// The reasons. Their texts, not their numbers, appear in files.
const (
	ReasonNone       Reason = iota
	NotIndexed              // the build ID is known and the store has no object for it
	Stripped                // the object is indexed; no source of it covers the address
	LayoutUnknown           // only a debug file is indexed: file offsets cannot be mapped
	Mismatch                // the file at the recorded path has another build ID now
	NoBuildID               // the capture has no build ID for the mapping
	Ambiguous               // a padded build ID matches two objects
	AnonymousMemory         // code without a file: JIT without a map
	ImageNotCaptured        // a BPF program without code, perhaps with a name
	KernelHidden            // kptr_restrict hid the kernel's addresses
	StackNotUnwound         // --call-graph dwarf: the user stack is still to be unwound
	OutsideMapping          // no mapping covers the address: a junk chain tail, or a lost record
	OutsideObject           // the offset lies in no segment of the object
	GuestCode               // code of a virtual machine
	HypervisorCode
	TableDamaged // the store's table could not be read
	// MapsNotSaved is of a bare address in a stack map without the mappings: there is no
	// /proc/PID/maps of the process, and no kallsyms of the boot.
	MapsNotSaved
	StackLost // a stack map had no room for the stack, or it was not taken
	// ProcessGone is of an address in a bundle of stacks: its process had ended before its
	// mappings could be read.
	ProcessGone
	// MapsNotRead is of an address in a bundle of stacks: the mappings of its process could not be
	// read, though it lived.
	MapsNotRead
	// AddressReused is of an address that was in several objects, one after another, while the
	// time of its stack is not known.
	AddressReused
	// The reasons below are of the frame that a copied user stack (--call-graph dwarf) ends with
	// where it could not be unwound to its end.

	StackTruncated // the copy of the stack ends before the stack does
	OtherStack     // the rest is on a stack that was not copied
	NoUnwindTable  // the store has no unwind table for the object of the frame before
	ChainBroken    // the code of the frame before has no rule, or led nowhere
	StackNotCopied // nothing was copied: the program was being replaced

	// CallersUncertain is of the frame that a copied stack has where code without unwind rules
	// was stepped over by its frame pointer, which may be that of a function further out.
	CallersUncertain
	numReasons
)

var reasonText = [numReasons]string{
	ReasonNone:       "none",
	NotIndexed:       "not indexed",
	Stripped:         "stripped",
	LayoutUnknown:    "layout unknown",
	Mismatch:         "build ID mismatch",
	NoBuildID:        "no build ID",
	Ambiguous:        "ambiguous",
	AnonymousMemory:  "anonymous memory",
	ImageNotCaptured: "image not captured",
	KernelHidden:     "kernel hidden",
	StackNotUnwound:  "stack not unwound",
	OutsideMapping:   "outside every mapping",
	OutsideObject:    "outside the object",
	GuestCode:        "guest code",
	HypervisorCode:   "hypervisor code",
	TableDamaged:     "table damaged",
	MapsNotSaved:     "mappings not saved",
	StackLost:        "stack lost",
	ProcessGone:      "process gone",
	MapsNotRead:      "mappings not read",
	AddressReused:    "address reused",
	StackTruncated:   "stack truncated",
	OtherStack:       "other stack",
	NoUnwindTable:    "no unwind table",
	ChainBroken:      "chain broken",
	StackNotCopied:   "stack not copied",
	CallersUncertain: "callers uncertain",
}

// String returns the reason in words, as reports print it.
func (r Reason) String() string {
	if r < numReasons {
		return reasonText[r]
	}
	return "unknown reason"
}

// ReasonFromString is the inverse of String; ok is false for other text.
func ReasonFromString(s string) (r Reason, ok bool) {
	for i, t := range reasonText {
		if t == s {
			return Reason(i), true
		}
	}
	return ReasonNone, false
}

// ReasonWithoutID returns the reason of locations in an object of this kind that has no build
// ID and no name of its own.
func ReasonWithoutID(k ObjectKind) Reason {
	switch k {
	case JIT:
		return ImageNotCaptured
	case PerfMap, JITDump, Anonymous:
		return AnonymousMemory
	case Unmapped:
		return OutsideMapping
	case Guest:
		return GuestCode
	case Hypervisor:
		return HypervisorCode
	case NoStack:
		return StackNotUnwound
	}
	return NoBuildID
}
