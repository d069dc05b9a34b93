package flame

import (
	"io"
	"strconv"
	"strings"

	"symbolize/analyze/calltree"
	"symbolize/ingest/texts"
)

// geckoVersion is the version of the processed profile format that WriteGecko writes; the
// Firefox Profiler reads it and all later ones' readers bring it up to date
// (docs-developer/CHANGELOG-formats.md of firefox-devtools/profiler).
const geckoVersion = 66

// WriteGecko writes all stacks for the Firefox Profiler, in its processed format. With SetTimes it
// writes single samples at their times, and a thread for each event and thread. Else the samples of
// a Profile have no times of their own: each row is one sample with its weight, a millisecond
// after the one before, in a thread for each event and combination of labels.
func (g *Graph) WriteGecko(w io.Writer) error {
	j := newJSONWriter(w)
	j.WriteString(`{"meta":{"categories":`)
	j.list(len(kindStyles), func(i int) {
		j.WriteString(`{"name":"` + kindStyles[i].name + `","color":"` + kindStyles[i].gecko +
			`","subcategories":["Other"]}`)
	})
	j.WriteString(`,"debug":false,"extensions":{"baseURL":[],"id":[],"length":0,"name":[]},` +
		`"interval":`)
	j.float(g.interval())
	j.WriteString(`,"markerSchema":[],"pausedRanges":[],"preprocessedProfileVersion":` +
		strconv.Itoa(geckoVersion) + `,"processType":0,"product":`)
	j.str(g.Title)
	j.WriteString(`,"sampleUnits":{"eventDelay":"ms","threadCPUDelta":"µs","time":"ms"},` +
		`"sourceCodeIsNotOnSearchfox":true,"startTime":`)
	j.num(g.startMillis)
	j.WriteString(`,"symbolicated":true,"usesOnlyOneStackType":true,"version":24,"importedFrom":` +
		`"symbolize"},"libs":[],"counters":[],"pages":[],"profilerOverhead":[],"shared":`)
	if g.times != nil {
		g.times.write(j)
	} else {
		t := g.numberStacks()
		g.geckoTables(j, t)
		j.WriteString(`,"threads":`)
		j.list(len(g.Columns), func(c int) { g.geckoThread(j, c, t) })
	}
	j.WriteString("}\n")
	return j.Flush()
}

// geckoStacks has the stacks of all rows as a table of (parent, frame).
type geckoStacks struct {
	parents []uint32 // distance to the parent; 0 for a root
	frames  []uint32 // two times the number of the node, plus one if inlined
	stackOf []int32  // by row; -1 for an empty stack
	columns [][]uint32
}

// numberStacks numbers the stacks: sorted ones share their beginnings with the one before.
func (g *Graph) numberStacks() *geckoStacks {
	t := &geckoStacks{stackOf: make([]int32, len(g.rows.rows)),
		columns: make([][]uint32, len(g.Columns))}
	for e := range g.Events {
		var path []calltree.NodeID
		var numbers []int32 // of path in the table
		for _, i := range g.byStack(e) {
			r := &g.rows.rows[i]
			t.columns[r.column] = append(t.columns[r.column], i)
			stack := g.rows.frames[r.from:r.to]
			same := 0
			for same < len(path) && same < len(stack) && path[same] == stack[same] {
				same++
			}
			path, numbers = append(path[:same], stack[same:]...), numbers[:same]
			for _, n := range stack[same:] {
				parent := uint32(0)
				if k := len(numbers); k > 0 {
					parent = uint32(len(t.frames)) - uint32(numbers[k-1])
				}
				numbers = append(numbers, int32(len(t.frames)))
				t.parents, t.frames = append(t.parents, parent), append(t.frames, geckoFrame(n))
			}
			t.stackOf[i] = -1
			if len(numbers) > 0 {
				t.stackOf[i] = numbers[len(numbers)-1]
			}
		}
	}
	return t
}

// geckoFrame is the number of the frame of a node of a stack.
func geckoFrame(n calltree.NodeID) uint32 {
	node, inlined := n.Inlined()
	if inlined {
		return 2*uint32(node) + 1
	}
	return 2 * uint32(node)
}

// geckoColumn is a column of a table: the same JSON value in all rows, or a number of each;
// negative ones are null with nullable set.
type geckoColumn struct {
	name, same string
	value      func(i int) int64
	nullable   bool
}

// geckoTable writes a table of n rows.
func (j *jsonWriter) geckoTable(name string, n int, columns ...geckoColumn) {
	j.WriteString(`"` + name + `":{"length":` + strconv.Itoa(n))
	for _, c := range columns {
		j.WriteString(`,"` + c.name + `":`)
		j.list(n, func(i int) {
			switch {
			case c.value == nil:
				j.WriteString(c.same)
			case c.nullable && c.value(i) < 0:
				j.WriteString("null")
			default:
				j.num(c.value(i))
			}
		})
	}
	j.WriteString("},")
}

func same(name, value string) geckoColumn { return geckoColumn{name: name, same: value} }

func each(name string, value func(i int) int64) geckoColumn {
	return geckoColumn{name: name, value: value}
}

// geckoTables writes the tables that threads share. Each node is a function with two frames, a
// physical and an inlined one; strings are the names, then the files, then the objects.
func (g *Graph) geckoTables(j *jsonWriter, t *geckoStacks) {
	objects, objectOf := g.geckoObjects()
	n := len(g.rows.nodes)
	j.WriteByte('{')
	g.geckoFrames(j)
	g.geckoFunctions(j, objectOf)
	const library = "1" // the type of a resource
	j.geckoTable("resourceTable", len(objects), same("host", "null"), same("lib", "null"),
		each("name", from(2*n)), same("type", library))
	j.geckoTable("sourceLocationTable", 0, same("column", ""), same("line", ""),
		same("source", ""))
	j.geckoTable("sources", n, same("content", "null"), each("filename", from(n)),
		same("id", "null"), same("sourceMapURL", "null"), same("startColumn", "1"),
		same("startLine", "1"))
	j.geckoTable("stackTable", len(t.frames),
		each("frame", func(i int) int64 { return int64(t.frames[i]) }),
		each("prefixOffset", func(i int) int64 { return int64(t.parents[i]) }))
	g.geckoStrings(j, objects)
	j.WriteByte('}')
}

// from counts from a number on.
func from(first int) func(i int) int64 {
	return func(i int) int64 { return int64(first + i) }
}

// geckoFrames writes two frames of each node.
func (g *Graph) geckoFrames(j *jsonWriter) {
	nodes := g.rows.nodes
	j.geckoTable("frameTable", 2*len(nodes), same("address", "-1"), each("category", func(i int) int64 {
		if k := kindOf(&nodes[i/2]); i%2 == 0 || k == kindUnresolved {
			return int64(k)
		}
		return kindInlined
	}), same("column", "null"), each("func", func(i int) int64 { return int64(i / 2) }),
		each("inlineDepth", func(i int) int64 { return int64(i % 2) }), same("innerWindowID", "0"),
		same("line", "null"), same("nativeSymbol", "null"), same("originalLocation", "null"),
		same("subcategory", "0"))
}

// geckoFunctions writes a function of each node.
func (g *Graph) geckoFunctions(j *jsonWriter, objectOf []int) {
	nodes := g.rows.nodes
	lines := geckoColumn{name: "lineNumber", nullable: true, value: func(i int) int64 {
		if nodes[i].Line > 0 {
			return int64(nodes[i].Line)
		}
		return -1
	}}
	j.geckoTable("funcTable", len(nodes), same("columnNumber", "null"), same("isJS", "false"), lines,
		each("name", from(0)), same("originalLocation", "null"), same("relevantForJS", "false"),
		each("resource", func(i int) int64 { return int64(objectOf[i]) }), each("source", from(0)))
	j.geckoTable("nativeSymbols", 0, same("address", ""), same("functionSize", ""),
		same("libIndex", ""), same("name", ""))
}

func (g *Graph) geckoStrings(j *jsonWriter, objects []string) {
	nodes := g.rows.nodes
	n := len(nodes)
	j.WriteString(`"stringArray":`)
	j.list(2*n+len(objects), func(i int) {
		switch {
		case i < n:
			j.str(nodes[i].Name)
		case i < 2*n:
			j.str(texts.Printable(nodes[i-n].File))
		default:
			j.str(objects[i-2*n])
		}
	})
}

// geckoObjects numbers the objects of the nodes; -1 for none.
func (g *Graph) geckoObjects() (objects []string, objectOf []int) {
	index := make(map[string]int)
	for i := range g.rows.nodes {
		o := g.rows.nodes[i].Object
		if o == "" {
			objectOf = append(objectOf, -1)
			continue
		}
		n, ok := index[o]
		if !ok {
			n = len(objects)
			index[o] = n
			objects = append(objects, o)
		}
		objectOf = append(objectOf, n)
	}
	return objects, objectOf
}

// geckoThread writes the samples of a column.
func (g *Graph) geckoThread(j *jsonWriter, number int, t *geckoStacks) {
	c := &g.Columns[number]
	e := &g.Events[c.Event]
	name, pid := g.value(c, 0), "0"
	for l := 1; l < len(c.Values); l++ {
		word := g.value(c, l)
		if rest, ok := strings.CutPrefix(word, "pid "); ok {
			pid = rest
			continue
		}
		name += ", " + word
	}
	rows := t.columns[number]
	j.geckoThread(&geckoThread{name: name, process: name, pid: pid, tid: strconv.Itoa(number + 1),
		event: e, several: len(g.Events) > 1, samples: len(rows),
		stack:  func(i int) int32 { return t.stackOf[rows[i]] },
		weight: func(i int) uint64 { return g.rows.rows[rows[i]].value },
		delta:  func(int) float64 { return 1 }})
}

// geckoThread is a thread of the Firefox Profiler.
type geckoThread struct {
	name, process, pid, tid string
	event                   *Event
	several                 bool // events: the name has the event
	main                    bool // of its process
	samples                 int
	stack                   func(i int) int32   // -1 for an empty one
	weight                  func(i int) uint64  // in the event's unit
	delta                   func(i int) float64 // to the time of the sample before, ms
}

func (j *jsonWriter) geckoThread(t *geckoThread) {
	j.WriteString(`{"isMainThread":` + strconv.FormatBool(t.main) +
		`,"markers":{"category":[],"data":[],"endTime":[],` +
		`"length":0,"name":[],"phase":[],"startTime":[]},"pausedRanges":[],` +
		`"processShutdownTime":null,"processStartupTime":0,"processType":"default",` +
		`"registerTime":0,"unregisterTime":null,"name":`)
	if t.several {
		j.str(t.name + " (" + t.event.Name + ")")
	} else {
		j.str(t.name)
	}
	j.WriteString(`,"processName":`)
	j.str(t.process)
	j.WriteString(`,"pid":`)
	j.str(t.pid)
	j.WriteString(`,"tid":"` + t.tid + `","samples":{`)
	j.geckoSamples(t)
	j.WriteString("}}")
}

// geckoSamples writes the samples of a thread.
func (j *jsonWriter) geckoSamples(t *geckoThread) {
	kind, scale := "samples", 1.0
	switch t.event.Unit {
	case "nanoseconds":
		kind, scale = "tracing-ms", 1e-6
	case "bytes":
		kind = "bytes"
	}
	j.WriteString(`"weightType":"` + kind + `","length":` + strconv.Itoa(t.samples) + `,"stack":`)
	j.list(t.samples, func(i int) {
		if s := t.stack(i); s >= 0 {
			j.num(int64(s))
		} else {
			j.WriteString("null")
		}
	})
	j.WriteString(`,"weight":`)
	j.list(t.samples, func(i int) {
		if v := t.weight(i); scale == 1 {
			j.count(v)
		} else {
			j.float(float64(v) * scale)
		}
	})
	j.WriteString(`,"timeDeltas":`)
	j.list(t.samples, func(i int) { j.float(t.delta(i)) })
}

// float writes a number of milliseconds.
func (j *jsonWriter) float(v float64) {
	j.scratch = strconv.AppendFloat(j.scratch[:0], v, 'g', 12, 64)
	j.Write(j.scratch)
}
