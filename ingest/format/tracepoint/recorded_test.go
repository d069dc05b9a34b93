package tracepoint_test

import (
	"os"
	"testing"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/tracepoint"
)

// TestRecorded reads the formats of a recording.
func TestRecorded(t *testing.T) {
	const path = "../../../fixtures/captures/tracepoint.data"
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := perfdata.Open(path, r, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.FeatureBytes(perfdata.FeatureTracingData, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	list, err := tracepoint.Parse(path, b, 0)
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	for _, x := range list {
		if x.Name == "" || x.ID != f.Events[0].Attr.Config && len(f.Events) == 1 || len(x.Fields) == 0 {
			t.Errorf("%+v", x)
		}
		t.Logf("%s:%s %d: %d fields", x.System, x.Name, x.ID, len(x.Fields))
	}
}
