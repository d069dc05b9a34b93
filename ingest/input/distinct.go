package input

import (
	"iter"
	"runtime"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/fold/merge"
)

// altResult is a further part that one raw chain resolved to, in another worker, address
// space or time. It is mostly equal to the first.
type altResult struct {
	owner int        // the first worker that has the chain
	chain intern.Ref // its number there
	first uint32     // its first part there
	where int        // the worker of the other part
	part  uint32
}

// chainCount counts the chains of one role, once their words are freed.
type chainCount struct {
	chains     uint64 // distinct over all workers
	altResults []altResult
}

// joinChains finds the chains that several workers have, and frees the words: they are
// most of the memory of the second pass, and only the results are needed after it.
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
	if f.counts[0].chains+f.counts[1].chains >= manyChains {
		runtime.GC() // milliseconds, as next to no pointers are there; frees about a third
	}
}

// manyChains is from how many distinct chains, or rows, on freed tables are given back at once:
// some 10 MB. Below it a collection costs more than all the rest.
const manyChains = 64 << 10

// countChains compares the tables of the workers on all cores.
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

// count counts some chains of table i. A user part has one owner, by its hash, and is in a
// second table only if that worker adopted it; a kernel part is in the tables of all owners
// of its user parts.
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

// firstPart returns the first result of a chain.
func (t *chainTable) firstPart(chain intern.Ref, v *chainValue) uint32 {
	if all := t.results[chain]; len(all) > 0 {
		return all[0]
	}
	return v.part
}

// distinct counts chains, and keys, which are pairs of a chain and a result. The parts of
// all workers have common ranks by then.
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
