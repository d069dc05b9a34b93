// Package recordfile reads and writes the files between the steps of package batch: named records,
// each the value of a Go type, found without reading the others.
//
// A file appears complete or not at all. All integers of the frame are little-endian.
//
//	"symbolize batch 1\n"
//	records        of one zstd frame each
//	index          a record: []entry, the names of the records, sorted, where they lie, how long
//	               they are, and their CRC32C
//	u64            where the index lies
//	u32            CRC32C of the index
//	"batch end\n"
//
// A record holds the shape of a Go type, u32, and a value of it. The shape is the CRC32C of the
// names and kinds of all its fields: a file of another version of the program is refused, not
// misread. Values are written field by field:
//
//	bool, unsigned      uvarint (bool: one byte)
//	signed              varint (zigzag)
//	string, slice       uvarint length, then the bytes or elements
//	array, struct       its elements or fields
//	map                 uvarint length, then keys and values, sorted by the bytes of the keys
//	pointer             a byte, 0 for nil, then the value
//	buildid.ID          a byte, space<<1 | inexact; uvarint length; the bytes
package recordfile
