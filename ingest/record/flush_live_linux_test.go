package record

import (
	"testing"
	"time"

	"symbolize/ingest/record/sampler"
)

// TestLiveFlushed captures programs that come and go while the recording is flushed all the time:
// each is recorded once and completely, in any part.
func TestLiveFlushed(t *testing.T) {
	needLive(t)
	opts := func(o Options) Options {
		o.flushEvery = 20 * time.Millisecond
		return o
	}
	for _, life := range []string{"5ms", "1us"} {
		n := recordShortLived(t, life, opts(Options{KernelCopy: true}))
		if n != shortLivedCount {
			t.Errorf("%s, copied inside the kernel: %d images of %d", life, n, shortLivedCount)
		}
	}
	t.Logf("images of %d programs that live 5ms: %d", shortLivedCount,
		recordShortLived(t, "5ms", opts(Options{Stacks: &sampler.Options{Frequency: 999}})))
}
