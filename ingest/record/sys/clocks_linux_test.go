package sys

import (
	"path/filepath"
	"testing"

	"symbolize/fixtures/must"
)

// TestTimeOffsets: the kernel's clocks are those of a process without the offsets of its time
// namespace.
func TestTimeOffsets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timens_offsets")
	text := "monotonic      864000         0\nboottime           -1 500000000\n"
	must.Write(t, path, []byte(text))
	if got, want := ReadTimeOffsets(path), (TimeOffsets{864000e9, -5e8}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := ReadTimeOffsets(path + "x"); got != (TimeOffsets{}) {
		t.Errorf("without a file: %+v", got)
	}
}
