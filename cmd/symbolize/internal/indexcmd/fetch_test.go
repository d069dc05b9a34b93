package indexcmd

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"symbolize/buildid"
	"symbolize/store/remote"
)

// TestFetchEach: files come several at a time, those of one build ID one after another.
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
		var ids [requests]atomic.Int32
		err := fetchEach(t.Context(), requests, list, func(_ context.Context, f *wantedFile) error {
			now := started.Add(1)
			i := f.id.Bytes()[1]
			if ids[i].Add(1) > 1 {
				t.Errorf("two files of %s at a time", f.id)
			}
			most.Store(max(most.Load(), now))
			if total.Add(1) == requests {
				close(all)
			}
			<-all // a deadlock ends the test
			started.Add(-1)
			ids[i].Add(-1)
			return nil
		})
		if err != nil || int(total.Load()) != len(list) || most.Load() > requests {
			t.Errorf("%d of %d, %d at a time, %v", total.Load(), len(list), most.Load(), err)
		}
	})
}

// TestArrivals: the bytes of all files are shown together, those of a repeated download once.
func TestArrivals(t *testing.T) {
	r := &arrivals{now: remote.Progress{Objects: 2}, files: make(map[string][2]int64)}
	for _, tt := range []struct {
		url        string
		got, total int64
		want       remote.Progress
	}{
		{"a", 10, 100, remote.Progress{Objects: 2, Bytes: 10, Size: 100}},
		{"b", 5, -1, remote.Progress{Objects: 2, Bytes: 15, Size: 105}},
		{"a", 60, 100, remote.Progress{Objects: 2, Bytes: 65, Size: 105}},
		{"a", 1, 100, remote.Progress{Objects: 2, Bytes: 6, Size: 105}},
		{"b", 9, -1, remote.Progress{Objects: 2, Bytes: 10, Size: 109}},
	} {
		if r.part(tt.url, tt.got, tt.total); r.now != tt.want {
			t.Errorf("%+v: %+v", tt, r.now)
		}
	}
	if r.done(); r.now.Done != 1 {
		t.Errorf("%+v", r.now)
	}
}
