package record

import (
	"encoding/binary"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
)

// bigEndian is the byte order of the host, in which the kernel writes records and info.
var bigEndian = perfdata.NativeBigEndian()

// entryBTF returns the id of the BTF of an entry of BPF_PROG_INFO, 0 if it has none:
// u32 info_len, u32 data_len, u64 arrays, then the info.
func entryBTF(entry []byte) uint32 {
	const infoAt = 16
	if len(entry) < infoAt+bpf.InfoBTFAt+4 {
		return 0
	}
	return binary.NativeEndian.Uint32(entry[infoAt+bpf.InfoBTFAt:])
}
