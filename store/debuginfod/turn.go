package debuginfod

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/files"
)

// locksName is the directory of locks in the cache. There is one lock for each first byte of build
// IDs: elfutils' client, which shares the cache, never removes them, so there must be few.
const locksName = ".symbolize-locks"

// lockPoll is the pause between tries of a lock that another process holds.
const lockPoll = 50 * time.Millisecond

// turn waits until no other process fetches the files of a build ID, and keeps other processes from
// it until done is called.
func (c *Client) turn(ctx context.Context, id buildid.ID) (done func(), err error) {
	dir := filepath.Join(c.opts.Cache, locksName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := files.OpenPlain(filepath.Join(dir, hex.EncodeToString(id.Bytes()[:1])),
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
