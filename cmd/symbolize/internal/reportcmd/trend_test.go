package reportcmd

import (
	"testing"
	"time"

	"symbolize/analyze/diff"
	"symbolize/ingest"
)

// TestBeganAt: a profile has its own time, else the last date in its path.
func TestBeganAt(t *testing.T) {
	own := time.Date(2026, time.May, 1, 3, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, path string
		nanos      int64
		want       time.Time
		fails      bool
	}{
		{name: "own", path: "2026-01-01/web.pb.gz", nanos: own.UnixNano(), want: own},
		{name: "directory", path: "2026-01-01/web.pb.gz",
			want: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)},
		{name: "file", path: "/srv/2026-01-01/web-2026-01-02.pb.gz",
			want: time.Date(2026, time.January, 2, 0, 0, 0, 0, time.UTC)},
		{name: "longer numbers", path: "12026-01-011.pb.gz", fails: true},
		{name: "no day", path: "2026-02-31.pb.gz", fails: true},
		{name: "none", path: "web.pb.gz", fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := beganAt(diff.Input{Name: tt.path, Profile: &ingest.Profile{
				Meta: ingest.Meta{StartNanos: tt.nanos}}})
			if (err != nil) != tt.fails || !got.Equal(tt.want) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
