package record

import (
	"slices"
	"testing"
	"time"

	"symbolize/ingest/record/sampler"
)

// flushedRuns bounds the recordings of TestLiveFlushed, one of which has to be complete.
const flushedRuns = 5

// TestLiveFlushed captures programs that come and go while the recording is flushed all the time:
// each is recorded once and completely, in any part.
func TestLiveFlushed(t *testing.T) {
	needLive(t)
	opts := func(o Options) Options {
		o.flushEvery = 20 * time.Millisecond
		return o
	}
	for _, life := range []string{"5ms", "1us"} {
		var list []int // a busy machine loses some, each with its reason
		for len(list) < flushedRuns && !slices.Contains(list, shortLivedCount) {
			list = append(list, recordShortLived(t, life, opts(Options{KernelCopy: true})))
		}
		// Slow machines lose some of those that live 1us in each run.
		if slices.Max(list) < shortLivedCount*3/4 {
			t.Errorf("%s, copied inside the kernel: %d images of %d", life, list, shortLivedCount)
		}
	}
	t.Logf("images of %d programs that live 5ms: %d", shortLivedCount,
		recordShortLived(t, "5ms", opts(Options{Stacks: &sampler.Options{Frequency: 999}})))
}
