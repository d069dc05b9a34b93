package perfdata

import "bytes"

// grown returns the valid length of a record's body, including a trailer of this size: all, except
// for two types that the kernel makes too long. Where several events on a CPU ask for KSYMBOL or
// BPF_EVENT (two recorders run), each gets the record longer by the trailers of those before it
// (perf_event_ksymbol_output and perf_event_bpf_output, which do not restore the size), with
// uninitialised bytes there: the trailer follows the record's own fields, not its end. perf itself
// reads time 0 from those.
func grown(rec *Record, trailer int) int {
	own := OwnFields(rec.Type, rec.Body)
	if own == 0 || own+trailer > len(rec.Body) {
		return len(rec.Body)
	}
	return own + trailer
}

// OwnFields returns the number of bytes of a KSYMBOL or BPF_EVENT record after its header
// and before its trailer; 0 for other types, whose trailer is at the end, and for records
// that are cut off. KSYMBOL: u64 addr, u32 len, u16 type, u16 flags, the name with a NUL,
// padded to 8. BPF_EVENT: u16 type, u16 flags, u32 id, u8 tag[8].
func OwnFields(kind Type, body []byte) int {
	const fixed, align = 16, 8
	if len(body) < fixed {
		return 0
	}
	switch kind {
	case TypeBPFEvent:
		return fixed
	case TypeKSymbol:
		if n := bytes.IndexByte(body[fixed:], 0); n >= 0 {
			return fixed + (n+align)&^(align-1)
		}
	}
	return 0
}
