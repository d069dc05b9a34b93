package input

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// repeats counts the samples whose recorded chains, labels and address spaces were those of a
// sample shortly before: what a chain becomes depends on nothing else, so that it needs neither be
// simplified nor encoded, nor looked up in the tables. Samples of a service have few chains; where
// the chains differ, repeats switches itself off for a time.
type repeats struct {
	seed  maphash.Seed
	slots []repeat // direct-mapped by hash
	asked int      // look-ups since the last decision
	found int      // of them
	off   int      // samples that pass without a look-up
}

// repeat is a sample that came often, and how often since it was folded last.
type repeat struct {
	hash uint64
	// rival is the hash of the last other sample that fell on the slot. It has to come twice, so
	// that samples that come once are not copied, and oftener than the present one.
	rival   uint64
	message        // its count is 0 in a free slot
	chain   uint32 // bytes of data that are the recorded chain; the encoded parts follow
	kpart   uint32 // bytes of the encoded kernel part
	lead    uint8  // rivals that the slot is kept from
	data    []byte
}

const (
	repeatBits = 13
	// maxRepeat is the length of the longest chain that is kept, bytes: perf records 127 words at
	// most unless it is asked for more.
	maxRepeat = 1 << 10
	// repeatWindow is after how many look-ups repeats decides whether it stays on.
	repeatWindow = 4 << repeatBits
	// repeatLeast is the least share of look-ups, one in so many, that must find something: with
	// less than a third the time of those that do not was as much as the others saved.
	repeatLeast = 3
	// repeatPause is for how many samples repeats is off.
	repeatPause = 16 * repeatWindow
	repeatLead  = 3
	// mostRepeats bounds a count, which must fit into that of a row.
	mostRepeats = 1 << 30
)

// find counts the sample of m in the slot that has its chain, and reports true; else it returns the
// slot that the sample is to take, nil if none.
func (t *repeats) find(chain []byte, m *message) (slot *repeat, found bool) {
	if t.slots == nil {
		t.slots = make([]repeat, 1<<repeatBits)
	}
	t.asked++
	h := maphash.Bytes(t.seed, chain)
	h = (h ^ uint64(m.user)<<32 ^ uint64(m.kernel)<<16 ^ uint64(m.label)) * 0x9e3779b97f4a7c15
	s := &t.slots[h>>(64-repeatBits)]
	switch {
	case s.hash == h && s.count > 0 && s.count < mostRepeats && s.label == m.label &&
		s.user == m.user && s.kernel == m.kernel && bytes.Equal(s.data[:s.chain], chain):
		s.count++
		s.weight += m.weight
		s.lead = repeatLead
		t.found++
		return nil, true
	case s.lead > 0:
		s.lead--
	case s.rival == h:
		s.hash = h
		return s, false
	default:
		s.rival = h
	}
	return nil, false
}

// pause reports whether the present sample passes without a look-up. It starts pauses, for which
// the slots are to be folded.
func (t *repeats) pause() (off, starts bool) {
	if t.off > 0 {
		t.off--
		return true, false
	}
	if t.asked < repeatWindow {
		return false, false
	}
	if t.found < t.asked/repeatLeast {
		t.off, starts = repeatPause, true
	}
	t.asked, t.found = 0, 0
	return starts, starts
}

// set makes a slot that of a sample.
func (s *repeat) set(m *message, chain, kpart, part []byte) {
	s.message, s.lead = *m, 0
	s.chain, s.kpart = uint32(len(chain)), uint32(len(kpart))
	s.data = append(append(append(s.data[:0], chain...), kpart...), part...)
}

// parts returns the encoded parts of a slot's chain.
func (s *repeat) parts() (kpart, part []byte) {
	both := s.data[s.chain:]
	return both[:s.kpart:s.kpart], both[s.kpart:]
}

// repeated counts the present sample if it is one of repeats. It leaves out those whose parts
// depend on more than their chain.
func (w *worker) repeated() bool {
	s := &w.sample
	w.slot, w.labelled = nil, false
	if off, starts := w.repeats.pause(); off {
		if starts {
			w.foldRepeats()
		}
		return false
	}
	if len(w.counts) != 1 || w.guest || s.HasUserStack || s.UserRegsABI != 0 || len(s.Branches) > 0 ||
		len(s.Chain) < 8 || len(s.Chain) > maxRepeat ||
		binary.LittleEndian.Uint64(s.Chain) < contextMax {
		return false
	}
	w.event, w.weight = w.counts[0].Event, w.counts[0].Count
	w.message = message{weight: w.weight, count: 1, label: w.label(), user: w.user, kernel: w.kernel}
	w.labelled = true
	found := false
	if w.slot, found = w.repeats.find(s.Chain, &w.message); found {
		w.seen(s.Time)
	}
	return found
}

// remember enters the present sample, of an encoded chain, into the slot that repeated has found.
// It reports false if the sample cannot be kept.
func (w *worker) remember(m *message, kpart, part []byte) bool {
	s := w.slot
	if s == nil || w.lone || w.split.late {
		return false
	}
	w.foldRepeat(s)
	s.set(m, w.sample.Chain, kpart, part)
	return true
}

// foldRepeat folds the samples that a slot has counted, and frees it.
func (w *worker) foldRepeat(s *repeat) {
	if s.count > 0 {
		kpart, part := s.parts()
		w.forward(&s.message, kpart, part)
		s.count = 0
	}
}

// foldRepeats folds the samples of all slots, and frees these.
func (w *worker) foldRepeats() {
	for i := range w.repeats.slots {
		w.foldRepeat(&w.repeats.slots[i])
	}
	w.repeats.slots = nil
}
