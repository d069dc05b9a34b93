package pair

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// machine switches threads on its CPUs at random, and passes records of it to Threads.
type machine struct {
	rng     *rand.Rand
	x       *Threads
	now     uint64
	runs    []int32  // by CPU; 0 for the idle thread
	exited  []uint64 // by CPU: the time of the EXIT record of the thread that runs
	waits   []int32
	free    []int32          // numbers of threads that ended
	born    map[int32]uint64 // of living threads
	life    map[int32]uint64 // of all threads with a number
	process bool             // only records of odd threads, and none after EXIT
	second  bool             // SWITCH records
	drop    int              // one of so many records is dropped; 0 for none
}

// has reports whether a thread has a record, and another thread another one.
func (m *machine) has(tid int32) bool {
	return (!m.process || tid%2 == 1) && (m.drop == 0 || m.rng.IntN(m.drop) > 0)
}

func (m *machine) point(tid int32, cpu int) Point {
	return Point{Time: m.now, TID: tid, CPU: int32(cpu), Stack: 1}
}

// after is the time of the next record.
func (m *machine) after() { m.now += 1 + m.rng.Uint64N(5) }

// step switches threads on a CPU, or makes a thread, wakes one, or ends that which runs.
func (m *machine) step() {
	cpu := m.rng.IntN(len(m.runs))
	m.after()
	tid := m.runs[cpu]
	switch n := m.rng.IntN(10); {
	case n == 0 && tid != 0 && len(m.free) > 0 && m.exited[cpu] == 0:
		i := m.rng.IntN(len(m.free))
		child := m.free[i]
		if m.process && (child-tid)%2 != 0 {
			return // the events of a process are inherited
		}
		m.free = slices.Delete(m.free, i, i+1)
		m.born[child] = m.now
		m.waits = append(m.waits, child)
		if m.has(child) {
			m.x.New(m.point(child, cpu))
		}
	case n == 1 && tid != 0 && m.exited[cpu] == 0:
		m.exited[cpu] = m.now
		if m.has(tid) {
			m.x.Exit(m.point(tid, cpu))
		}
		if m.process {
			m.end(tid)
		}
	case n == 2 && len(m.waits) > 0:
		woken := m.waits[m.rng.IntN(len(m.waits))]
		if !m.process && m.has(tid) {
			m.x.Wake(m.point(woken, cpu), m.point(tid, cpu), m.rng.IntN(3) == 0)
		}
	default:
		m.change(cpu)
	}
}

// end counts the life of a thread.
func (m *machine) end(tid int32) {
	m.life[tid] += m.now - m.born[tid]
	delete(m.born, tid)
}

// change switches the threads of a CPU.
func (m *machine) change(cpu int) {
	prev, next := m.runs[cpu], int32(0)
	if n := len(m.waits); n > 0 && m.rng.IntN(4) > 0 {
		i := m.rng.IntN(n)
		next = m.waits[i]
		m.waits = slices.Delete(m.waits, i, i+1)
	}
	dead := m.exited[cpu] > 0
	why, number := Why(m.rng.IntN(2)), prev
	if dead {
		why, number = Dead, Nobody
	}
	if !(m.process && dead) && m.has(prev) {
		m.x.Out(m.point(prev, cpu), why)
		in := m.point(next, cpu)
		if m.process && next%2 == 0 {
			in.TID = 0
		}
		m.x.In(in)
	}
	if dead {
		if !m.process {
			m.end(prev)
		}
		m.free = append(m.free, prev)
	} else if prev != 0 {
		m.waits = append(m.waits, prev)
	}
	m.runs[cpu], m.exited[cpu] = next, 0
	if !m.second {
		return
	}
	m.after()
	if !(m.process && dead) && m.has(number) {
		m.x.OutAgain(m.point(number, cpu), why)
	}
	m.after()
	if m.has(next) {
		m.x.Again(m.point(next, cpu))
	}
}

// TestMachine: no CPU runs two threads, no thread runs and waits at once, or twice, whatever records
// of random switches are missing. If none is, each thread has its life.
func TestMachine(t *testing.T) {
	type span struct{ from, to uint64 }
	for seed := range uint64(400) {
		var cpus, threads map[int32][]span
		cpus, threads = make(map[int32][]span), make(map[int32][]span)
		x := &Threads{From: 1, WakerDepth: 2, Run: func(from Point, to uint64) {
			cpus[from.CPU] = append(cpus[from.CPU], span{from.Time, to})
			threads[from.TID] = append(threads[from.TID], span{from.Time, to})
		}, Emit: func(w *Wait) {
			threads[w.Out.TID] = append(threads[w.Out.TID], span{w.Out.Time, w.In.Time})
		}}
		m := machine{rng: rand.New(rand.NewPCG(seed, 2)), x: x, now: 1, runs: make([]int32, 3),
			exited: make([]uint64, 3), born: make(map[int32]uint64), life: make(map[int32]uint64),
			process: seed&1 != 0, second: seed&2 != 0 || seed&1 != 0, drop: []int{0, 3, 10, 50}[seed/4%4]}
		for tid := int32(1); tid <= 9; tid++ {
			m.waits = append(m.waits, tid)
			m.born[tid] = 1
		}
		for range 600 {
			m.step()
		}
		m.after()
		x.Finish(m.now)
		for _, of := range []map[int32][]span{cpus, threads} {
			for n, list := range of {
				slices.SortFunc(list, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
				for i, s := range list {
					if s.from < 1 || s.to > m.now || s.to < s.from || i > 0 && s.from < list[i-1].to {
						t.Fatalf("seed %d: %d has %v after %v, until %d", seed, n, s, list[max(0, i-1)], m.now)
					}
				}
			}
		}
		for tid, from := range m.born {
			m.life[tid] += m.now - from
		}
		for cpu, at := range m.exited {
			if at > 0 && !m.process { // no record shows that it went on
				m.life[m.runs[cpu]] -= m.now - at
			}
		}
		for tid, life := range m.life {
			sum := uint64(0)
			for _, s := range threads[tid] {
				sum += s.to - s.from
			}
			if m.drop == 0 && (!m.process && sum != life || tid%2 == 1 && sum > life) {
				t.Errorf("seed %d: thread %d has %d, its life is %d", seed, tid, sum, life)
			}
		}
	}
}
