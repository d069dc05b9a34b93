package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestPassErrors has the ends of processes that ran out of memory, and of others.
func TestPassErrors(t *testing.T) {
	for _, tc := range []struct{ name, in, out, reason string }{
		{"nothing", "", "", ""},
		{"errors", "a: 1\nb", "a: 1\nb", ""},
		{"heap", "note\nruntime: out of memory: cannot allocate 4194304-byte block\n" +
			"fatal error: out of memory\n\ngoroutine 1 [running]:\nmain.main()\n", "note\n",
			"runtime: out of memory: cannot allocate 4194304-byte block"},
		{"threads", "runtime/cgo: pthread_create failed: Resource temporarily unavailable\n" +
			"SIGABRT: abort\nPC=0x7fa18e040eec m=0\n", "",
			"runtime/cgo: pthread_create failed: Resource temporarily unavailable"},
		{"a fault of ours is shown", "panic: index out of range\n\ngoroutine 1 [running]:\n",
			"panic: index out of range\n\ngoroutine 1 [running]:\n", ""},
	} {
		var out bytes.Buffer
		reason := passErrors(strings.NewReader(tc.in), &out)
		if reason != tc.reason || out.String() != tc.out {
			t.Errorf("%s: %q, reason %q", tc.name, out.String(), reason)
		}
	}
}
