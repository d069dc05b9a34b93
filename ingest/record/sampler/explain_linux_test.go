package sampler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"testing"

	"symbolize/ingest/format/bundle"
)

// one makes a frame; id is set where it has a build ID.
func one(status uint32, id byte, offset uint64) []byte {
	f := make([]byte, userFrame)
	binary.NativeEndian.PutUint32(f, status)
	if id != 0 {
		copy(f[frameID:], bytes.Repeat([]byte{id}, BuildIDSize))
	}
	binary.NativeEndian.PutUint64(f[frameOffset:], offset)
	return f
}

func join(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

// threePlaces knows three places, in every process elsewhere: code of a file with build ID 9 at
// 0x1000 × the process's number and code without a build ID 0x100 behind it; of process 3 it knows
// nothing. The mappings of process 4 have changed at time 50.
type threePlaces struct{}

func (threePlaces) Number(Process, []int) uint32 { return 4 }

func (threePlaces) Locate(of Process, at uint64) Place {
	base := uint64(of.PID) * 0x1000
	switch {
	case of.PID == 4 && of.Time < 50:
		return Place{Kind: Ambiguous, Unproven: true}
	case of.PID == 3:
		return Place{}
	case of.PID == 6:
		return Place{Kind: Mapped, Timed: true}
	case of.PID == 5:
		return Place{Kind: Unread}
	case at >= base && at < base+0x100:
		return Place{Kind: InFile, BuildID: [BuildIDSize]byte(bytes.Repeat([]byte{9}, BuildIDSize)),
			Offset: at - base + 0x40}
	case at >= base+0x100 && at < base+0x200:
		return Place{Kind: Mapped}
	}
	return Place{Kind: Outside}
}

func TestExplained(t *testing.T) {
	const ip, valid = statusIP, statusValid
	gone, outside := one(ip, 0, bundle.GoneAddress), one(ip, 0, bundle.OutsideAddress)
	for _, c := range []struct {
		name         string
		pid          int32
		frames, want []byte
	}{
		{name: "nothing", pid: 1},
		{name: "what has a build ID", pid: 1, frames: one(valid, 5, 0x1010),
			want: one(valid, 5, 0x1010)},
		{name: "where it runs", pid: 1, frames: one(ip, 0, 0x1010), want: one(valid, 9, 0x50)},
		{name: "beyond the end of the mapping", pid: 1, frames: one(ip, 0, 0x1200), want: outside},
		{name: "return address behind the last instruction", pid: 1,
			frames: join(one(valid, 5, 1), one(ip, 0, 0x1100), one(ip, 0, 0x1200)),
			want:   join(one(valid, 5, 1), one(valid, 9, 0x140), one(ip, 0, 0x1200))},
		{name: "no build ID", pid: 2, frames: one(ip, 0, 0x2180), want: one(ip, 0, 0x2180)},
		{name: "bytes where a build ID would be", pid: 2, frames: one(ip, 7, 0x2180),
			want: one(ip, 0, 0x2180)},
		{name: "gone", pid: 3, frames: join(one(ip, 0, 0x3000), one(ip, 0, 0)),
			want: join(gone, gone)},
		{name: "unread", pid: 5, frames: one(ip, 0, 0x3000), want: one(ip, 0, bundle.UnreadAddress)},
		{name: "rubbish at the end", pid: 1,
			frames: join(one(valid, 5, 1), one(ip, 0, 7), one(ip, 0, 8), one(ip, 0, 0)),
			want:   join(one(valid, 5, 1), outside)},
		{name: "rubbish between", pid: 1,
			frames: join(one(ip, 0, 7), one(ip, 0, 8), one(valid, 5, 1)),
			want:   join(outside, outside, one(valid, 5, 1))},
		{name: "nothing but rubbish", pid: 1, frames: join(one(ip, 0, 7), one(ip, 0, 8)),
			want: outside},
		{name: "a part of a frame", pid: 1, frames: one(ip, 0, 0x1010)[:20],
			want: one(ip, 0, 0x1010)[:20]},
	} {
		var e explained
		e.explain(bytes.Clone(c.frames), Process{PID: c.pid}, threePlaces{})
		got, mapped := e.frames, len(e.mappings) > 0
		if !bytes.Equal(got, c.want) {
			t.Errorf("%s: %x, want %x", c.name, got, c.want)
		}
		if want := bytes.HasSuffix(got, one(ip, 0, 0x2180)) || bytes.HasSuffix(got, one(ip, 0, 0x1200)); mapped != want {
			t.Errorf("%s: mappings are needed: %v", c.name, mapped)
		}
	}
}

// TestExplainTimes: a stack in code that another may replace keeps its times, others are one count.
func TestExplainTimes(t *testing.T) {
	s := withoutKernel(t, Options{})
	s.files = make(fileSet)
	x := s.tables[userStack]
	x.add(hash{1, 1}, one(statusIP, 0, 0x2180))
	x.flush()
	for i, pid := range []uint32{2, 2, 6, 6, 6} {
		s.counts.add(s.tables, &countKey{User: hash{1, 1}, PID: pid, Mapped: []uint64{40, 50, 40, 50, 50}[i]},
			[2]uint64{}, countValue{Count: 1})
	}
	if err := s.Explain(threePlaces{}); err != nil {
		t.Fatal(err)
	}
	got := make(map[[2]uint64]uint64) // by process and time
	for k, v := range s.counts.of {
		got[[2]uint64{uint64(k.pid), k.time}] += v.Count
		if k.mapped != 0 || k.program != 0 || k.number != 4 {
			t.Errorf("%+v", k)
		}
	}
	if want := map[[2]uint64]uint64{{2, 0}: 2, {6, 40}: 1, {6, 50}: 2}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestExplain: stacks of two processes that differ only in addresses become one stack.
func TestExplain(t *testing.T) {
	s := withoutKernel(t, Options{})
	s.files = make(fileSet)
	x := s.tables[userStack]
	x.limit = 5
	x.add(hash{1, 1}, join(one(statusIP, 0, 0x1010), one(statusIP, 0, 77)))
	x.add(hash{2, 2}, join(one(statusIP, 0, 0x2010), one(statusIP, 0, 88)))
	x.add(hash{3, 3}, one(statusIP, 0, 0x4000))
	whole := join(one(statusValid, 9, 0x50), one(statusIP, 0, bundle.OutsideAddress))
	x.add(hashIn(0, one(statusValid, 5, 1)), one(statusValid, 5, 1))
	x.flush()
	for _, k := range []countKey{
		{User: hash{1, 1}, PID: 1}, {User: hash{2, 2}, PID: 2}, {User: hash{1, 1}, PID: 3},
		{User: hash{1, 1}, PID: 1, Kernel: hash{7, 7}},
		{User: hashIn(0, one(statusValid, 5, 1)), PID: 1}, {User: hash{99, 99}, PID: 1},
	} {
		s.counts.add(s.tables, &k, [2]uint64{}, countValue{Count: 1, Weight: 10})
	}
	for i, k := range []countKey{{User: hash{3, 3}, PID: 4, Mapped: 40},
		{User: hash{3, 3}, PID: 4, Mapped: 50}, {User: hash{3, 3}, PID: 4, Mapped: 60}} {
		s.counts.add(s.tables, &k, [2]uint64{}, countValue{Count: []uint64{1, 2, 2}[i]})
	}
	s.counts.add(s.tables, &countKey{User: hash{98, 98}, PID: 1, Mapped: 5}, [2]uint64{}, countValue{Count: 64})
	if err := s.Explain(threePlaces{}); err != nil {
		t.Fatal(err)
	}
	if s.counts.total() != 6+1+2+2+64 {
		t.Errorf("%d samples", s.counts.total())
	}
	for kind, want := range map[PlaceKind]uint64{Gone: 1, Unread: 0, Ambiguous: 1, Outside: 0} {
		if got := s.Unplaced(kind); got != want {
			t.Errorf("%d samples have addresses of kind %d, want %d", got, kind, want)
		}
	}
	users, gone := map[int32]uint64{}, 0
	buf := make([]byte, x.deep*userFrame)
	for k, v := range s.counts.of {
		users[k.user] += v.Count
		if !x.received(k.user) {
			continue
		}
		frames, err := x.read(k.user, buf)
		if err != nil {
			t.Fatal(err)
		}
		switch k.pid {
		case 3:
			gone++
		case 1, 2:
			if !bytes.Equal(frames, whole) && !bytes.Equal(frames, one(statusValid, 5, 1)) {
				t.Errorf("%+v: %x", k, frames)
			}
		}
	}
	if id := x.id(hashIn(0, whole)); users[id] != 3 || gone != 1 {
		t.Errorf("samples by stack %v, that of both is %d; %d of the process that is gone", users, id, gone)
	}
	if !s.HasFile(bytes.Repeat([]byte{9}, BuildIDSize)) || s.HasFile(nil) || s.HasFile([]byte{9}) {
		t.Error("build IDs that were found are not remembered")
	}
	if k := oneOf(s, 4, 1); k.user != x.id(hashIn(0, one(statusIP, 0, bundle.AmbiguousAddress))) ||
		s.Unproven() != 1 {
		t.Errorf("before mappings changed: %+v, %d samples unproven", k, s.Unproven())
	}
	if k := oneOf(s, 4, 4); k.user != x.id(hashIn(0, one(statusValid, 9, 0x40))) {
		t.Errorf("of two times of the same mappings: %+v", k)
	}
	if k := oneOf(s, 1, 64); k.number != noNumber { // its stack was not received
		t.Errorf("without a stack: %+v", k)
	}
	s.counts.add(s.tables, &countKey{User: hash{3, 3}, PID: 4, Mapped: 70}, [2]uint64{}, countValue{Count: 128})
	x.file.Close()
	if err := s.Explain(threePlaces{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("stacks that cannot be read: %v", err)
	}
	if k := oneOf(s, 4, 128); k.number != noNumber {
		t.Errorf("addresses that are not explained are in mappings %d", k.number)
	}
}

// oneOf returns the count of a process with so many samples.
func oneOf(s *Sampler, pid uint32, n uint64) tally {
	for k, v := range s.counts.of {
		if k.pid == pid && v.Count == n {
			return k
		}
	}
	return tally{thread: thread{number: 99}}
}

func TestMet(t *testing.T) {
	x := make(fileSet)
	a := join(one(statusValid, 1, 5), one(statusValid, 1, 6), one(statusIP, 3, 5))
	for i, c := range []struct {
		frames []byte
		want   bool
	}{{frames: a, want: true}, {frames: a}, {frames: join(a, one(statusValid, 2, 5)), want: true}, {want: false}, {frames: a[:20]}} {
		if got := x.add(c.frames); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
	if len(x) != 2 {
		t.Errorf("%d build IDs", len(x))
	}
}
