// Package mapdump reads dumps of BPF maps in all their forms, as pairs of a key and a value for
// each CPU:
//
//   - Raw: our own dump (ingest/format/bundle), alone or an entry of a bundle;
//   - JSON: `bpftool map dump` with -j or -p;
//   - Plain: the hexadecimal text that bpftool prints for a map without BTF, in one line
//     per pair or in several, with a value for each CPU where the map is per CPU;
//   - Text: what bpftool prints for a map with BTF without -j: names and values of members, without
//     their bytes, which are made anew (text.go).
//
// bpftool's JSON is invalid where a map holds floats or a character that is a quote, and its
// formatted part is wrong in other places, so that the bytes are read and the formatted part is
// skipped by a scanner that only requires balanced brackets. The forms are from bpftool's map.c
// (print_entry_json, print_entry_plain), 4.15 to 7.5.
package mapdump

import "errors"

// errFormatted stops the reader of bytes at a dump of the form Text.
var errFormatted = errors.New("keys and values without their bytes: dump it with `bpftool -j map dump`")

// ErrNotDump is returned for a file in none of the forms.
var ErrNotDump = errors.New("not a dump of a BPF map")

// ErrTool is returned for a file with bpftool's error message: the map did not exist, or
// could not be read.
var ErrTool = errors.New("bpftool failed and printed its error in place of a dump")

// ErrSeveral is returned for a dump of several maps, which bpftool makes for a name that
// is not unique; the first is read.
var ErrSeveral = errors.New(
	"more than one map in the dump, the first is read: dump the others by id")

// Form is the format of a dump.
type Form uint8

// The forms.
const (
	NoForm Form = iota
	Raw
	JSON
	Plain
	Text
)

// Bounds. Buffers grow with the bytes read, never by sizes declared in a file.
const (
	maxKey   = 64 << 10  // bytes; the kernel refuses keys of more than MAX_BPF_STACK in most maps
	maxPair  = 1 << 30   // bytes of all values of a key: as in ingest/format/bundle
	maxCPUs  = 1 << 16   // values of a key
	maxNest  = 1 << 10   // brackets in skipped parts
	maxWord  = 256       // bytes of a string or word that are kept
	readSize = 256 << 10 // bytes read at a time
	headSize = 4 << 10   // bytes that identify the form
)
