package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"symbolize/fixtures/livemap"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/record/sys"
)

// TestLiveCaptureMaps records maps: one grows, one is removed and made again, one never exists.
func TestLiveCaptureMaps(t *testing.T) {
	needLive(t)
	grows := livemap.New(t, ebpf.PerCPUHash, "live_grows", 100)
	goes := livemap.New(t, ebpf.Hash, "live_goes", 10)
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	// The command signals that the recording has begun, and ends when all is done.
	ready, says, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	hears, ends, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	steps := make(chan error, 1)
	go func() {
		_, err := ready.Read(make([]byte, 1))
		steps <- errors.Join(err, changeMaps(grows, goes), ends.Close())
	}()
	sum, err := Record(t.Context(), w, Options{
		Maps:        []string{"live_grows", "live_goes", "live_never"},
		MapInterval: 30 * time.Millisecond, Command: []string{"sh", "-c", "echo; read end"},
		Stdin: hears, Stdout: says})
	says.Close() // if the command did not run
	if err := errors.Join(err, <-steps); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{ready, hears} {
		f.Close()
	}
	warnings := strings.Join(sum.Warnings, "\n")
	for _, want := range []string{"map live_goes (id ", "was removed after", "another map with this name",
		"map live_never never existed"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no %q in the warnings:\n%s", want, warnings)
		}
	}
	checkSeries(t, path, sum)
}

// changeMaps lets a map grow while another is removed and made again. A recorder with dumps every
// 30 ms sees each state, even if the machine delays it by half a second.
func changeMaps(grows, goes *ebpf.Map) error {
	const gone, anew, steps = 10, 20, 40
	for i := range uint32(steps) {
		time.Sleep(50 * time.Millisecond)
		if err := grows.Put(i, make([]uint64, possibleCPUs(&sys.Host{}))); err != nil {
			return err
		}
		switch i {
		case gone:
			goes.Close()
		case anew:
			again, err := ebpf.NewMap(&ebpf.MapSpec{Name: "live_goes", Type: ebpf.Array,
				KeySize: 4, ValueSize: 4, MaxEntries: 3})
			if err != nil {
				return err
			}
			defer again.Close()
		}
	}
	return nil
}

// checkSeries opens the dumps of the bundle: their times and pairs grow, and their BTF exists.
func checkSeries(t *testing.T, path string, sum *Summary) {
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Warnings) > 0 {
		t.Fatal(b.Warnings)
	}
	defer b.Close()
	r, size, err := b.Entry(bundle.PerfDataName)
	if err != nil {
		t.Fatal(err)
	}
	d, err := perfdata.Open("perf.data", r, size)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := d.FeatureBytes(perfdata.FeatureBPFBTF, 1<<28)
	if err != nil {
		t.Fatal(err)
	}
	btfs, err := bpf.DecodeBTFs("btf", blobs, 0, bigEndian)
	if err != nil {
		t.Fatal(err)
	}
	dumps, made, last := 0, 0, make(map[string]rawdump.Header)
	for _, entry := range b.Names() {
		series, n, ok := bundle.CutSeries(entry)
		if !ok {
			continue
		}
		dumps++
		r, size, err := b.Entry(entry)
		if err != nil {
			t.Fatal(err)
		}
		x, err := rawdump.Open(entry, r, size)
		if err != nil {
			t.Fatal(err)
		}
		h := x.Header
		before, again := last[series]
		if again && (h.Time <= before.Time || h.Entries < before.Entries) || (n > 1) != again ||
			series != fmt.Sprintf("%d-%s", h.MapID, h.Name) {
			t.Errorf("%s: %+v behind %+v", entry, h, before)
		}
		if created := n == 1 && h.Entries == 0 && h.Type == uint32(ebpf.Array); created {
			made++ // an array without an element: it did not exist yet
		}
		if h.BTFID != 0 && (btfs[h.BTFID] == nil || btfs[h.BTFID].Name(1) == "" &&
			btfs[h.BTFID].Len() < 3) {
			t.Errorf("%s: no BTF %d", entry, h.BTFID)
		}
		last[series] = h
	}
	if dumps != sum.MapDumps || dumps < 20 || len(last) != 3 || sum.Maps != 3 {
		t.Errorf("%d dumps of %d maps; the summary has %d of %d", dumps, len(last), sum.MapDumps, sum.Maps)
	}
	if made != 1 {
		t.Errorf("%d maps begin without elements, want the one that was made while recording", made)
	}
	for series, h := range last {
		if strings.HasSuffix(series, "live_grows") && (h.Entries < 5 || h.BTFID == 0) {
			t.Errorf("%s: at last %+v", series, h)
		}
	}
}

// TestLiveCaptureNoMap: a name that no map has is an error at once.
func TestLiveCaptureNoMap(t *testing.T) {
	needLive(t)
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Record(t.Context(), w, Options{Duration: time.Minute, Maps: []string{"live_nobody"}})
	if !errors.Is(err, ErrNoMap) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
}
