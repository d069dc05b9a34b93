// Package mapdump reads dumps of BPF maps in every form in which they are met, as
// pairs of a key and a value for each CPU:
//
//   - Raw: our own dump (ingest/format/bundle), alone or an entry of a bundle;
//   - JSON: `bpftool map dump` with -j or -p;
//   - Plain: the hexadecimal text that bpftool prints of a map without BTF, in one line
//     a pair or in several, with a value for each CPU where the map is per CPU.
//
// Of a map that has BTF bpftool's plain text shows formatted values without the bytes
// they were made of. Such a dump is refused (ErrFormatted): floats, bit fields, unions
// and padding cannot be had back from it.
//
// bpftool's JSON is no JSON where a map holds floats or a character that is a quote,
// and what it formats is wrong in other places, so that the bytes are read and the
// formatted part is passed over by a scanner that wants balanced brackets only.
// The forms are those of bpftool's map.c (print_entry_json, print_entry_plain), 4.15
// to 7.5.
package mapdump

import "errors"

// ErrFormatted says that bpftool printed values by BTF and left out their bytes.
var ErrFormatted = errors.New("bpftool printed this map by its BTF, without the bytes of keys " +
	"and values, which cannot be had back: dump it with `bpftool -j map dump`")

// ErrNotDump says that a file is in none of the forms.
var ErrNotDump = errors.New("not a dump of a BPF map")

// ErrTool is what bpftool printed in place of a dump: the map was not there, or could
// not be read.
var ErrTool = errors.New("bpftool failed and printed its error in place of a dump")

// ErrSeveral says that bpftool dumped several maps, as it does for a name that is not
// unique; the first is read.
var ErrSeveral = errors.New(
	"more than one map in the dump, the first is read: dump the others by id")

// Form is how a dump is written.
type Form uint8

// The forms.
const (
	NoForm Form = iota
	Raw
	JSON
	Plain
)

// String returns the form in words.
func (f Form) String() string {
	switch f {
	case Raw:
		return "raw dump"
	case JSON:
		return "bpftool JSON"
	case Plain:
		return "bpftool text"
	}
	return "unknown form"
}

// Bounds. Buffers grow with what is read, never with what a file says.
const (
	maxKey   = 64 << 10  // bytes; the kernel refuses keys of more than MAX_BPF_STACK in most maps
	maxPair  = 1 << 30   // bytes of all values of a key: as in ingest/format/bundle
	maxCPUs  = 1 << 16   // values of a key
	maxNest  = 1 << 10   // brackets in what is passed over
	maxWord  = 256       // bytes of a string or word that are kept
	maxShow  = 16 << 20  // bytes of the output of `bpftool map show`
	readSize = 256 << 10 // bytes read at a time
	headSize = 4 << 10   // bytes that tell the form
)
