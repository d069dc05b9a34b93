package bpf

import (
	"symbolize/ingest/decode"
)

// Metadata is a BPF_METADATA record, which perf writes since 6.17 from the variables of a program
// with names that begin with "bpf_metadata_".
type Metadata struct {
	Program string // a Symbol: "bpf_prog_TAG_NAME"
	Values  []MetadataValue
}

// MetadataValue is a variable, without the prefix of its name, and its value as perf printed it.
type MetadataValue struct{ Key, Value string }

// Sizes of the fields of struct perf_record_bpf_metadata
// (tools/lib/perf/include/perf/event.h), bytes.
const (
	metadataNameLen  = 512
	metadataKeyLen   = 64
	metadataValueLen = 256
)

// DecodeMetadata decodes the body of a BPF_METADATA record (type 84), which is at offset base of
// the file name. Values that were whole before an error are returned with it.
func DecodeMetadata(name string, body []byte, base int64, bigEndian bool) (Metadata, error) {
	r := decode.New(name, body, base, bigEndian)
	m := Metadata{Program: r.FixedString(metadataNameLen)}
	n := r.U64()
	for i := uint64(0); i < n && r.Err() == nil; i++ {
		v := MetadataValue{r.FixedString(metadataKeyLen), r.FixedString(metadataValueLen)}
		if r.Err() == nil {
			m.Values = append(m.Values, v)
		}
	}
	return m, r.Err()
}
