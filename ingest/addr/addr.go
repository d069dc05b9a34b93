// Package addr holds the three kinds of address that this field keeps apart and
// that every mistake in it confuses. It is a leaf.
package addr

// PC is an address of the recording host as it was sampled, at run time.
type PC uint64

// Offset is a place in an object, independent of where the object was loaded.
// Its meaning goes with the kind of the object (DESIGN.md section 2): a file
// offset for ELF files and vdsos; ip − reference symbol for the kernel; ip − load
// address for modules; ip − start for JITed functions; the address itself for
// perf maps.
type Offset uint64

// Addr is the address by which an object's own tables speak: the ELF virtual
// address (st_value) of ELF files and vdsos; address − `_text` for the kernel; the
// loader's section layout for modules; the Offset itself for all others.
type Addr uint64

// Range is the half-open interval [Start, End) of table addresses.
type Range struct{ Start, End Addr }

// Contains reports whether a lies in r.
func (r Range) Contains(a Addr) bool { return a >= r.Start && a < r.End }
