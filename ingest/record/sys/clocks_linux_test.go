package sys

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTimeOffsets: the kernel's clocks are those of a process without the offsets of its time
// namespace.
func TestTimeOffsets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timens_offsets")
	text := "monotonic      864000         0\nboottime           -1 500000000\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := ReadTimeOffsets(path), (TimeOffsets{864000e9, -5e8}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := ReadTimeOffsets(path + "x"); got != (TimeOffsets{}) {
		t.Errorf("without a file: %+v", got)
	}
}
