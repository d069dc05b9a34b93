package datatype

import (
	"testing"

	"symbolize/ingest/object/flow"
)

// TestEffects: what calls change, by the names of functions. A kernel has __x86_indirect_thunk_array where it has
// the first thunk, so that the former must not count.
func TestEffects(t *testing.T) {
	for name, want := range map[string]flow.Effect{
		"__fentry__": flow.Nothing, "abort": flow.Never, "panic": flow.Never, "__get_user_4": flow.Few,
		"__x86_indirect_thunk_rax": flow.Through, "__x86_indirect_thunk_r15": flow.Through + 15,
		"__x86_indirect_thunk_array": flow.ByABI, "__x86_indirect_thunk_rbx": flow.Through + 3, "memcpy": flow.ByABI,
	} {
		if got := effectOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
