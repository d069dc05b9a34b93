package input

import (
	"iter"
	"runtime"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/fold/merge"
)

// altResult is something that a chain came to besides what the first worker that
// met it saw first: in another worker, in another address space or at another
// time. Mostly the two are the same.
type altResult struct {
	owner int        // the first worker that has the chain
	chain intern.Ref // its name there
	first uint32     // its first part there
	where int        // the worker of the other part
	part  uint32
}

// chainCount is what is left of the workers' chains of one role when the chains
// themselves are gone.
type chainCount struct {
	chains     uint64 // distinct over all workers
	altResults []altResult
}

// joinChains finds which chains several workers have, and lets go of the words:
// they are most of the memory that the second pass takes, and the rest of the
// work needs nothing but what the chains came to.
func (f *folder) joinChains() {
	for role := range f.counts {
		tables := make([]*chainTable, len(f.workers))
		for i, w := range f.workers {
			tables[i] = [merge.NumRoles]*chainTable{w.kernelChains, w.userChains}[role]
		}
		f.counts[role] = countChains(tables, role)
		for _, t := range tables {
			t.chains, t.recent, t.results = nil, nil, nil
		}
	}
	for _, w := range f.workers {
		w.reader.records = nil
	}
	runtime.GC() // milliseconds, as next to no pointers are there; frees about a third
}

// countChains compares the tables of the workers, a part of a table at a time on all
// cores.
func countChains(tables []*chainTable, role int) chainCount {
	var counts []*chainCount
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, t := range tables {
		for k := range intern.NumParts {
			c := new(chainCount)
			counts = append(counts, c)
			wg.Go(func() {
				slots <- struct{}{}
				c.count(tables, i, t.chains.Part(k), role)
				<-slots
			})
		}
	}
	wg.Wait()
	var all chainCount
	for _, c := range counts {
		all.chains += c.chains
		all.altResults = append(all.altResults, c.altResults...)
	}
	return all
}

// count takes some chains of table i. User parts are shared out by their hash, and
// with two workers only if one has adopted them; kernel parts go with the user
// part.
func (c *chainCount) count(tables []*chainTable, i int,
	chains iter.Seq[intern.Entry[chainValue]], role int,
) {
	t := tables[i]
	for e := range chains {
		m := altResult{owner: i, chain: e.Ref, where: i}
		m.part = t.firstPart(e.Ref, e.Value)
		m.first = m.part
		others := tables[:i]
		if role == merge.UserRole {
			others = nil
			if e.Value.flags&partAdopted != 0 {
				others = tables
			}
		}
		for k, other := range others {
			v, ref, ok := other.chains.Find(e.Key)
			if ok && (role == merge.KernelRole || v.flags&partAdopted == 0) {
				m.owner, m.chain, m.first = k, ref, other.firstPart(ref, v)
				break
			}
		}
		if m.owner == i {
			c.chains++
		} else {
			c.altResults = append(c.altResults, m)
		}
		if all := t.results[e.Ref]; len(all) > 0 {
			for _, m.part = range all[1:] {
				c.altResults = append(c.altResults, m)
			}
		}
	}
}

// firstPart returns what a chain came to first.
func (t *chainTable) firstPart(chain intern.Ref, v *chainValue) uint32 {
	if all := t.results[chain]; len(all) > 0 {
		return all[0]
	}
	return v.part
}

// distinct counts chains, and keys: chains with what they mean. It is called when
// the parts of all workers have common ranks.
func (f *folder) distinct(st *ingest.Stats) {
	type key struct {
		owner int
		chain intern.Ref
		rank  uint32
	}
	for role, c := range f.counts {
		others := make(map[key]struct{})
		for _, m := range c.altResults {
			rank := f.shards[m.where].Rank[role][m.part]
			if rank != f.shards[m.owner].Rank[role][m.first] {
				others[key{m.owner, m.chain, rank}] = struct{}{}
			}
		}
		st.DistinctChains += c.chains
		st.DistinctKeys += c.chains + uint64(len(others))
	}
}
