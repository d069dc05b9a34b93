//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTrustOfOthers looks at directories of root and of the test through the eyes of
// another user.
func TestTrustOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("TEST SKIPPED: only root can make directories of root")
	}
	for _, tc := range []struct {
		name string
		mode os.FileMode // of a directory of root above the store
		own  bool        // the store is the caller's, else root's
		safe bool
	}{
		{name: "all may write", mode: 0o777, own: true},
		{name: "the group may write", mode: 0o775, own: true},
		{name: "sticky", mode: 0o777 | os.ModeSticky, own: true, safe: true},
		{name: "nobody else", mode: 0o755, own: true, safe: true},
		{name: "root's store", mode: 0o755, safe: true}, // which the file system will not let him write
	} {
		above := filepath.Join(t.TempDir(), "above")
		path := filepath.Join(above, "store")
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(above, tc.mode)); err != nil {
			t.Fatal(err)
		}
		const uid = 54321
		if tc.own {
			if err := os.Lchown(path, uid, -1); err != nil {
				t.Fatal(err)
			}
		}
		w := trustWalk{path: path, uid: uid, outside: -1}
		if err := w.check(); (err == nil) != tc.safe {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
