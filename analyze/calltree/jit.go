package calltree

import (
	"cmp"
	"fmt"

	"symbolize/ingest"
)

// nameJIT finds the names of the objects with code that processes compiled at run time: "[jit] node"
// by the program of the process, otherwise by the name of most threads that run it. Several
// processes of one program have their numbers: "[jit] node 77".
func (f *Folder) nameJIT() {
	p := f.Profile
	var programs map[ingest.ObjectID]string
	process := make(map[string]int32) // by program: its only process, or -1
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.Kind != ingest.PerfMap && o.Kind != ingest.JITDump {
			continue
		}
		if programs == nil {
			programs = f.threadsOf()
			f.jit = make(map[ingest.ObjectID]string)
		}
		name := cmp.Or(o.Program, programs[ingest.ObjectID(i)])
		f.jit[ingest.ObjectID(i)] = name
		if pid, ok := process[name]; ok && pid != o.PID {
			process[name] = -1
		} else {
			process[name] = o.PID
		}
	}
	for id, name := range f.jit {
		text := "[jit]"
		if name != "" {
			text += " " + ingest.BaseName(name)
		}
		if process[name] < 0 {
			text += fmt.Sprintf(" %d", p.Objects[id].PID)
		}
		f.jit[id] = text
	}
}

// threadsOf returns, by object with compiled code, the name of the threads with most samples in it.
func (f *Folder) threadsOf() map[ingest.ObjectID]string {
	p := f.Profile
	type key struct {
		object ingest.ObjectID
		comm   ingest.StringID
	}
	weights := make(map[key]uint64)
	for i := range p.Samples {
		s := &p.Samples[i]
		last := ingest.NoObject
		for l := range p.Frames(s.Stack) {
			id := p.Locations[l].Object
			if k := p.Objects[id].Kind; id != last && (k == ingest.PerfMap || k == ingest.JITDump) {
				weights[key{id, s.Comm}] += s.Weight
				last = id
			}
		}
	}
	best := make(map[ingest.ObjectID]key)
	for k, w := range weights {
		b, ok := best[k.object]
		if !ok || w > weights[b] || w == weights[b] && k.comm < b.comm {
			best[k.object] = k
		}
	}
	names := make(map[ingest.ObjectID]string)
	for id, k := range best {
		names[id] = p.Strings[k.comm]
	}
	return names
}

// objectName returns the name of an object for people: its path, or of compiled code "[jit] node".
func (f *Folder) objectName(id ingest.ObjectID) string {
	if name, ok := f.jit[id]; ok {
		return name
	}
	return f.Profile.Objects[id].File.Path
}
