package sideband

import (
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/format/bundle"
)

// TestWall: the wall clock and the end of a recording, by what is known. The samples have the times
// 100 s to 160 s; the host was booted at 1,000 s.
func TestWall(t *testing.T) {
	const sec = 1_000_000_000
	const from, to = 100 * sec, 160 * sec
	const first, last = 1100 * sec, 1160 * sec // wall clock
	boot := bundle.Clocks{Perf: 500 * sec, Monotonic: 500 * sec, Boottime: 500 * sec, Realtime: 1500 * sec}
	suspended := bundle.Clocks{Perf: 400 * sec, Monotonic: 400 * sec, Boottime: 500 * sec,
		Realtime: 1500 * sec}
	remainder := boot
	remainder.Realtime -= 7 // another reading differs
	later := bundle.Clocks{Perf: 150 * sec, Monotonic: 150 * sec, Boottime: 150 * sec, Realtime: 1650 * sec}
	use := func(c bundle.Clocks) HostClocks {
		return func(k RecordedKernel) (bundle.Clocks, bool) { return c, k.Host == "here" && k.Release == "6.1" }
	}
	for _, tc := range []struct {
		name    string
		build   func(*perfbuild.File)
		file    FileTimes
		now     HostClocks
		untimed bool
		end     int64
		known   bool
		at      int64 // the wall clock at from
	}{
		{name: "nothing is known"},
		{name: "both clocks recorded", build: func(f *perfbuild.File) { f.ClockData(1, 5000*sec, 50*sec) },
			file: FileTimes{Modified: 9000 * sec, Born: 8999 * sec}, end: 5110 * sec, known: true, at: 5050 * sec},
		{name: "records have the wall clock", build: func(f *perfbuild.File) {
			f.Events[0].Flags |= perfbuild.UseClockID
			f.Events[0].ClockID = 0
		}, file: FileTimes{Modified: 9000 * sec}, end: to, known: true, at: from},
		{name: "this boot, the recorder's file", now: use(boot),
			file: FileTimes{Modified: last + 5*sec, Born: first - sec},
			end:  last + 5*sec, known: true, at: first},
		{name: "this boot, a copy", now: use(boot), file: FileTimes{Modified: 1400 * sec, Born: 1399 * sec},
			end: last, known: true, at: first},
		{name: "this boot, a copy with the time of the original", now: use(boot),
			file: FileTimes{Modified: last + sec, Born: 1400 * sec}, end: last + sec, known: true, at: first},
		{name: "this boot, creation unknown", now: use(boot), file: FileTimes{Modified: last + 5*sec},
			end: last + 5*sec, known: true, at: first},
		{name: "this boot, creation unknown, a copy", now: use(boot), file: FileTimes{Modified: 1400 * sec},
			end: last, known: true, at: first},
		{name: "this boot, clocks with a remainder", now: use(remainder), end: last, known: true, at: first},
		{name: "this boot, a stream", now: use(boot), end: last, known: true, at: first},
		{name: "suspended at some time, the recorder's file", now: use(suspended),
			file: FileTimes{Modified: last + 50*sec, Born: first + 49*sec},
			end:  last + 50*sec, known: true, at: first + 50*sec},
		{name: "suspended at some time, a copy", now: use(suspended), file: FileTimes{Modified: 1400 * sec,
			Born: 1399 * sec}, end: last, known: true, at: first},
		{name: "the file is older than the clocks allow", now: use(boot), file: FileTimes{Modified: 10 * sec,
			Born: 5 * sec}, end: last, known: true, at: first},
		{name: "booted since", now: use(later), file: FileTimes{Modified: last, Born: first - sec}, end: last,
			known: true, at: first},
		{name: "booted since, a copy", now: use(later), file: FileTimes{Modified: 1400 * sec, Born: 1399 * sec},
			end: 1400 * sec, at: 1340 * sec},
		{name: "another host, the recorder's file", build: func(f *perfbuild.File) {
			f.FeatureString(perfbuild.FeatureHostname, "there")
		}, now: use(boot), file: FileTimes{Modified: last, Born: first - sec}, end: last, known: true, at: first},
		{name: "no clocks, creation unknown", file: FileTimes{Modified: last}, end: last, at: first},
		{name: "no times in the records, written at once", untimed: true, now: use(boot),
			file: FileTimes{Modified: last, Born: last - 1000}, end: last},
		{name: "no times in the records, written slowly", untimed: true, now: use(boot),
			file: FileTimes{Modified: last, Born: last - sec}, end: last, known: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			f.FeatureString(perfbuild.FeatureHostname, "here")
			f.FeatureString(perfbuild.FeatureOSRelease, "6.1")
			if tc.build != nil {
				tc.build(f)
			}
			f.Comm(7, 7, "a", false, at(from)) // a file without records is cut off
			sb := scan(t, f, ScanOptions{File: tc.file, Now: tc.now})
			sb.Clock.Timed = !tc.untimed
			w := sb.Wall(from, to)
			if w.End != tc.end || w.Known != tc.known || w.At(from) != tc.at || w.At(0) != 0 {
				t.Errorf("end %d, known %t, at %d; want %d, %t, %d", w.End, w.Known, w.At(from), tc.end,
					tc.known, tc.at)
			}
		})
	}
	sb := New()
	sb.UseTimes(FileTimes{Modified: last}, nil)
	if w := sb.Wall(0, 0); w.End != last || !w.Known {
		t.Errorf("stack map: end %d, known %t", w.End, w.Known)
	}
}
