package input

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"symbolize/fixtures/perfbuild"
)

// The bits of read_format.
const (
	readEnabled = 1 << 0
	readRunning = 1 << 1
	readID      = 1 << 2
	readGroup   = 1 << 3
	readLost    = 1 << 4
)

// groupCapture is a capture of a group of two counters, on two CPUs: IDs 11 and 12 are of
// "cycles", 21 and 22 of "faults".
func groupCapture(big bool, readFormat, flags uint64) capture {
	b := perfbuild.NewOrder(big)
	ev := perfbuild.Event{Type: 1, Period: 4000, ReadFormat: readFormat,
		Flags: perfbuild.SampleIDAll | perfbuild.Freq | flags,
		SampleType: perfbuild.Identifier | perfbuild.IP | perfbuild.TID | perfbuild.Time |
			perfbuild.CPU | perfbuild.Period | perfbuild.Read | perfbuild.Callchain,
		IDs: []uint64{11, 12}, Name: "cycles"}
	member := ev
	member.Config, member.IDs, member.Name = 2, []uint64{21, 22}, "faults"
	b.Events = []perfbuild.Event{ev, member}
	b.EventDesc()
	c := capture{b}
	c.lib(7, 0x400000, 0x1000, 0, "/bin/x", 0)
	return c
}

// read appends a sample of thread tid with these words in its READ field.
func (c capture) read(tid int32, time, id uint64, words ...uint64) {
	c.Sample(perfbuild.Sample{PID: 7, TID: tid, Time: time, ID: id, Period: 999, Read: words,
		Chain: []uint64{cU, 0x400010}})
}

// TestReadings: the weight of a sample with counters is their count since their last
// reading, for each event of the group.
func TestReadings(t *testing.T) {
	for _, tc := range []struct {
		name   string
		format uint64
		flags  uint64
		event  string
		build  func(c capture)
		want   []string
		bad    uint64 // records
		lost   uint64 // counters of no event
		out    uint64 // filtered out
	}{
		{name: "a group on two CPUs", format: readID | readGroup, build: func(c capture) {
			c.read(7, 1, 11, 2, 100, 11, 5, 21)
			c.read(7, 2, 12, 2, 40, 12, 0, 22)
			c.read(7, 3, 11, 2, 170, 11, 5, 21)
			c.read(7, 4, 12, 2, 41, 12, 9, 22)
		}, want: []string{"cycles :7: /bin/x+0x10 4 211", "faults :7: /bin/x+0x10 2 14"}},
		{name: "times and lost samples", format: readID | readGroup | readLost | readEnabled |
			readRunning,
			build: func(c capture) {
				c.read(7, 1, 11, 2, 1e6, 2e6, 100, 11, 3, 5, 21, 4)
				c.read(7, 3, 11, 2, 3e6, 4e6, 170, 11, 3, 6, 21, 4)
			}, want: []string{"cycles :7: /bin/x+0x10 2 170", "faults :7: /bin/x+0x10 2 6"}},
		{name: "alone", format: readID | readEnabled | readLost, build: func(c capture) {
			c.read(7, 1, 11, 100, 1e6, 11, 0)
			c.read(7, 2, 21, 8, 1e6, 21, 0)
			c.read(7, 3, 11, 170, 1e6, 11, 0)
		}, want: []string{"cycles :7: /bin/x+0x10 2 170", "faults :7: /bin/x+0x10 1 8"}},
		{name: "alone, without an ID", format: readRunning, build: func(c capture) {
			c.read(7, 1, 11, 100, 1e6)
			c.read(7, 2, 11, 130, 1e6)
		}, want: []string{":7: /bin/x+0x10 2 130"}},
		{name: "a group without IDs has the period", format: readGroup, build: func(c capture) {
			c.read(7, 1, 11, 2, 100, 101)
		}, want: []string{":7: /bin/x+0x10 1 999"}},
		{name: "inherited counters count by thread", format: readID | readGroup,
			flags: perfbuild.Inherit, build: func(c capture) {
				c.read(7, 1, 11, 1, 100, 11)
				c.read(8, 2, 11, 1, 50, 11)
				c.read(7, 3, 11, 1, 130, 11)
				c.read(8, 4, 11, 1, 51, 11)
			}, want: []string{":7: /bin/x+0x10 2 130", ":8: /bin/x+0x10 2 51"}},
		{name: "no count, a lower one, one of no event", format: readID | readGroup,
			build: func(c capture) {
				c.read(7, 1, 11, 2, 100, 11, 0, 21)
				c.read(7, 2, 11, 2, 90, 11, 3, 21)
				c.read(7, 3, 11, 2, 95, 11, 4, 77)
			}, want: []string{"cycles :7: /bin/x+0x10 2 105", "faults :7: /bin/x+0x10 1 3"},
			bad: 1, lost: 1},
		{name: "one event", format: readID | readGroup, event: "faults", build: func(c capture) {
			c.read(7, 1, 11, 2, 100, 11, 3, 21)
			c.read(7, 2, 11, 2, 120, 11, 9, 21)
		}, want: []string{":7: /bin/x+0x10 2 9"}, out: 2},
	} {
		for _, big := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, big endian %t", tc.name, big), func(t *testing.T) {
				c := groupCapture(big, tc.format, tc.flags)
				tc.build(c)
				p := fold(t, c.Bytes(), Options{Selection: Selection{Event: tc.event}})
				if got := dump(p); !slices.Equal(got, tc.want) {
					t.Errorf("got  %q\nwant %q", got, tc.want)
				}
				if st := &p.Stats; st.BadRecords != tc.bad || st.UnknownIDs != tc.lost ||
					st.FilteredOut != tc.out {
					t.Errorf("%d bad, %d unknown, %d left out; want %d, %d, %d", st.BadRecords,
						st.UnknownIDs, st.FilteredOut, tc.bad, tc.lost, tc.out)
				}
			})
		}
	}
}

// longGroup is a capture of counters with separately read chunks.
func longGroup(big bool) []byte {
	c := groupCapture(big, readID|readGroup, perfbuild.Inherit)
	for i := range uint64(200) {
		cpu := i % 3 % 2
		c.read(7+int32(i%5), i+1, 11+cpu, 2, 100*i, 11+cpu, i/7, 21+cpu)
	}
	return c.Bytes()
}

// TestReadingsReplayed: readings count in the order of the recording, also where damaged times
// are in another.
func TestReadingsReplayed(t *testing.T) {
	c := groupCapture(false, readID|readGroup, 0)
	c.read(7, 5, 11, 2, 100, 11, 1, 21)
	c.read(7, 2, 11, 2, 170, 11, 1, 21)
	c.read(7, 9, 11, 2, 175, 11, 4, 21)
	cp, err := openBytes(t, c.Bytes(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := cp.Replay(t.Context(), func(s *ReplaySample) error {
		got = append(got, fmt.Sprintf("%d: event %d, %d", s.Time, s.Event, s.Period))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"2: event 0, 70", "5: event 0, 100", "5: event 1, 1", "9: event 0, 5",
		"9: event 1, 3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestReadingsOfChunks: the count is the same whichever worker reads the reading before.
func TestReadingsOfChunks(t *testing.T) {
	for _, big := range []bool{false, true} {
		data := longGroup(big)
		var all [][]string
		for _, size := range []int64{1, 500, 1 << 20} {
			c, err := openReader(data, 3)
			if err != nil {
				t.Fatal(err)
			}
			c.setChunkSize(size)
			p, err := c.Profile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, dump(p))
			var weight, n uint64
			if err := c.Replay(t.Context(), func(s *ReplaySample) error {
				weight += s.Period
				n++
				return nil
			}); err != nil || weight != p.Stats.Weight || n != p.Stats.Samples {
				t.Errorf("replay: %d samples, weight %d, %v; want %d, %d", n, weight, err,
					p.Stats.Samples, p.Stats.Weight)
			}
		}
		if !reflect.DeepEqual(all[0], all[1]) || !reflect.DeepEqual(all[0], all[2]) {
			t.Errorf("chunks of other sizes give other counts:\n%q", all)
		}
	}
}
