package batch

import "testing"

// SetJoinBytes sets joinBytes for one test.
func SetJoinBytes(t *testing.T, n int) {
	old := joinBytes
	joinBytes = n
	t.Cleanup(func() { joinBytes = old })
}
