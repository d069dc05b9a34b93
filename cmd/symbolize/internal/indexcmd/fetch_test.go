package indexcmd

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"symbolize/buildid"
)

// TestFetchEach: files come several at a time, those of one build ID one after another, and are
// reported in the order of the list.
func TestFetchEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 16
		var list []wantedFile
		for i := range 2 * requests {
			id := buildid.New([]byte{1, byte(i % requests)})
			list = append(list, wantedFile{Object: fmt.Sprint(i), id: id})
		}
		all := make(chan struct{}) // closed when the first of each build ID is under way
		var total, started, most atomic.Int32
		var order []string
		err := fetchEach(t.Context(), requests, list, func(_ context.Context, f *wantedFile) error {
			now := started.Add(1)
			most.Store(max(most.Load(), now))
			if total.Add(1) == requests {
				close(all)
			}
			<-all // a deadlock ends the test
			started.Add(-1)
			return nil
		}, func(f *wantedFile) error {
			order = append(order, f.Object)
			return nil
		})
		if err != nil || len(order) != len(list) || most.Load() > requests {
			t.Errorf("%d of %d, %d at a time, %v", len(order), len(list), most.Load(), err)
		}
		if !slices.EqualFunc(order, list, func(name string, f wantedFile) bool { return name == f.Object }) {
			t.Errorf("order %q", order)
		}
	})
}
