package bundle

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// keyFields are where the fields lie in the key of counts by which it is sorted, and rewritten;
// -1: there is no such field.
type keyFields struct{ user, kernel, pid, comm, program int }

const commSize = 16

// parseKey finds fields in a key of this size: "user_stack_id:0:4,kernel_stack_id:4:4,…".
func parseKey(text string, size uint32) (f keyFields, err error) {
	f = keyFields{-1, -1, -1, -1, -1}
	for part := range strings.SplitSeq(text, ",") {
		name, rest, _ := strings.Cut(part, ":")
		at, length, _ := strings.Cut(rest, ":")
		to, want := (*int)(nil), "4"
		switch name {
		case "user_stack_id":
			to = &f.user
		case "kernel_stack_id":
			to = &f.kernel
		case "tgid":
			to = &f.pid
		case "program":
			to = &f.program
		case "comm":
			to, want = &f.comm, strconv.Itoa(commSize)
		default:
			continue
		}
		n, _ := strconv.Atoi(want)
		if *to, err = strconv.Atoi(at); err != nil || length != want || *to < 0 ||
			*to+n > int(size) {
			return f, fmt.Errorf("key %q: the field %q is not of this form", text, part)
		}
	}
	if f.user < 0 || f.kernel < 0 || f.pid < 0 || f.comm < 0 {
		return f, fmt.Errorf("key %q: a field is missing", text)
	}
	return f, nil
}

// compare is the order of counts: by comm, process and stacks.
func (f *keyFields) compare(a, b []byte, o binary.ByteOrder) int {
	return cmp.Or(bytes.Compare(a[f.comm:][:commSize], b[f.comm:][:commSize]),
		cmp.Compare(o.Uint32(a[f.pid:]), o.Uint32(b[f.pid:])),
		cmp.Compare(int32(o.Uint32(a[f.user:])), int32(o.Uint32(b[f.user:]))),
		cmp.Compare(int32(o.Uint32(a[f.kernel:])), int32(o.Uint32(b[f.kernel:]))),
		bytes.Compare(a, b))
}
