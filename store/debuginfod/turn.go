package debuginfod

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"time"

	"symbolize/buildid"
	"symbolize/store/db/files"
)

// locksName is the directory of the cache with the locks: one for each first byte of build IDs, for
// the client of elfutils removes only files that it has made, and these are to stay few.
const locksName = ".symbolize-locks"

// lockPoll is how often a lock that another process has is tried again.
const lockPoll = 50 * time.Millisecond

// turn waits until no other process asks for the files of a build ID, and keeps others from it
// until done is called.
func (c *Client) turn(ctx context.Context, id buildid.ID) (done func(), err error) {
	dir := filepath.Join(c.opts.Cache, locksName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := files.Open(filepath.Join(dir, hex.EncodeToString(id.Bytes()[:1])),
		os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		locked, err := files.Lock(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if !locked {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(lockPoll):
		}
	}
}
