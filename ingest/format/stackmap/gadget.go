package stackmap

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// isGadget reports whether text is output of Inspektor Gadget, JSON or YAML, with a user stack.
func isGadget(text []byte) bool {
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return bytes.Contains(text, []byte(`"buildid"`)) ||
			bytes.Contains(text, []byte(`"addresses"`))
	}
	for line := range bytes.Lines(text) {
		name, _, ok := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		if ok && (string(name) == "buildid" || string(name) == "addresses") {
			return true
		}
	}
	return false
}

// readGadget reads events of Inspektor Gadget.
func readGadget(set *Set, in *Input) error {
	set.Counted = true
	head := bytes.TrimLeft(in.head(sniffBytes), " \t\r\n")
	if len(head) > 0 && (head[0] == '{' || head[0] == '[') {
		return readGadgetJSON(set, in)
	}
	return readGadgetYAML(set, in)
}

// readGadgetJSON reads objects: one a line, indented, or in an array.
func readGadgetJSON(set *Set, in *Input) error {
	objects := objectReader{name: in.Name, in: bufio.NewReaderSize(in.reader(), 64<<10)}
	for {
		object, ok := objects.next()
		if !ok {
			break
		}
		dec := json.NewDecoder(bytes.NewReader(object))
		dec.UseNumber()
		var event map[string]any
		if err := dec.Decode(&event); err != nil {
			set.warn(fmt.Errorf("%s: offset %#x: %w", in.Name, objects.start, err))
			continue
		}
		fields := make(map[string]string)
		flatten(fields, "", event)
		set.gadget(fields)
	}
	if objects.skipped > 0 {
		set.warn(fmt.Errorf("%s: %d events are damaged or larger than %d bytes and left out",
			in.Name, objects.skipped, maxLine))
	}
	return objects.err
}

// flatten adds the values of nested objects under their names joined by dots.
func flatten(to map[string]string, prefix string, from map[string]any) {
	for name, v := range from {
		switch v := v.(type) {
		case map[string]any:
			flatten(to, prefix+name+".", v)
		case string:
			to[prefix+name] = v
		case json.Number:
			to[prefix+name] = v.String()
		}
	}
}

// readGadgetYAML reads documents as Inspektor Gadget's yaml output writes them: nested
// mappings, scalars on a line, or quoted and folded over several.
func readGadgetYAML(set *Set, in *Input) error {
	lines := newLineReader(in.Name, in.reader())
	y := yamlReader{fields: make(map[string]string)}
	for line, whole := range lines.all() {
		if !whole {
			set.warn(fmt.Errorf("%s: the output breaks off in a line; its last event is left out",
				in.Name))
			clear(y.fields)
			break
		}
		if text := bytes.TrimRight(line, "\r"); string(text) == "---" {
			y.document(set)
		} else {
			y.line(string(text))
		}
	}
	if y.quote != 0 {
		set.warn(fmt.Errorf("%s: the output breaks off in a quoted value", in.Name))
		clear(y.fields)
	}
	y.document(set)
	return lines.finish(set)
}

// yamlReader holds the document that is being read.
type yamlReader struct {
	fields map[string]string
	path   []yamlName // the mappings that contain the current line
	quote  byte       // of a value that continues on the next line, or 0
	field  string
	value  strings.Builder
}

type yamlName struct {
	indent int
	name   string
}

// Limits of a document.
const (
	maxFields = 1 << 12
	maxNames  = 64 // of nested mappings
)

func (y *yamlReader) line(text string) {
	if y.quote != 0 {
		y.more(strings.TrimLeft(text, " "))
		return
	}
	body := strings.TrimLeft(text, " -")
	indent := len(text) - len(body)
	name, value, ok := strings.Cut(body, ":")
	if !ok || strings.HasPrefix(body, "#") {
		return
	}
	for len(y.path) > 0 && y.path[len(y.path)-1].indent >= indent {
		y.path = y.path[:len(y.path)-1]
	}
	prefix := ""
	if len(y.path) > 0 {
		prefix = y.path[len(y.path)-1].name
	}
	name = prefix + strings.Trim(name, `"'`)
	value = strings.TrimSpace(value)
	switch {
	case value == "":
		if len(y.path) < maxNames {
			y.path = append(y.path, yamlName{indent, name + "."})
		}
	case value[0] == '\'' || value[0] == '"':
		y.quote, y.field = value[0], name
		y.value.Reset()
		y.more(value[1:])
	default:
		y.set(name, value)
	}
}

// more adds another line to a quoted value: lines are joined with blanks.
func (y *yamlReader) more(text string) {
	if y.value.Len()+len(text) > maxLine {
		text = ""
	}
	if y.value.Len() > 0 {
		y.value.WriteByte(' ')
	}
	end := strings.IndexByte(text, y.quote)
	if end < 0 {
		y.value.WriteString(strings.TrimRight(text, " "))
		return
	}
	y.value.WriteString(text[:end]) // stacks have no nested quotes
	y.set(y.field, y.value.String())
	y.quote = 0
}

func (y *yamlReader) set(name, value string) {
	if len(y.fields) < maxFields {
		y.fields[name] = value
	}
}

func (y *yamlReader) document(set *Set) {
	if len(y.fields) > 0 {
		set.gadget(y.fields)
	}
	clear(y.fields)
	y.path = y.path[:0]
}

// gadget makes a sample of the fields of an event.
func (s *Set) gadget(fields map[string]string) {
	sm := Sample{PID: -1, TID: -1, Count: 1}
	var buildIDs, addresses, kernel string
	stack := false
	for _, name := range slices.Sorted(maps.Keys(fields)) { // always the same of several stacks
		v := fields[name]
		switch name[strings.LastIndexByte(name, '.')+1:] {
		case "buildid":
			buildIDs, stack = v, true
		case "addresses":
			addresses, stack = v, true
		case "kstack", "kern_stack", "kernel_stack":
			kernel, stack = v, true
		}
	}
	if !stack {
		s.Skipped++
		return
	}
	if run := s.gadgetUser(buildIDs, addresses); len(run) > 0 {
		sm.User = s.add(run)
	}
	if run := s.gadgetKernel(kernel); len(run) > 0 {
		sm.Kernel = s.add(run)
	}
	if sm.User.Cause == Absent && sm.Kernel.Cause == Absent {
		sm.User.Cause = NotTaken
	}
	number := func(name string) int32 {
		n, err := strconv.ParseInt(cmp.Or(fields["proc."+name], fields[name]), 10, 64)
		if err != nil {
			return -1
		}
		return processID(n)
	}
	sm.Comm = cmp.Or(fields["proc.comm"], fields["comm"])
	sm.PID, sm.TID = number("pid"), number("tid")
	s.Labels.Comm = s.Labels.Comm || sm.Comm != ""
	s.Labels.PID = s.Labels.PID || sm.PID >= 0
	s.Labels.TID = s.Labels.TID || sm.TID >= 0
	if n, err := strconv.ParseUint(fields["samples"], 10, 64); err == nil {
		sm.Count = n
	}
	if sm.Count > 0 {
		s.count(sm)
	}
}

// frameItems splits "[0]A; [1]B; " into A and B; the numbers may be missing.
func frameItems(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ";") {
		item = strings.TrimSpace(item)
		if i := strings.IndexByte(item, ']'); i > 0 && item[0] == '[' {
			if _, err := strconv.Atoi(item[1:i]); err == nil {
				item = strings.TrimSpace(item[i+1:])
			}
		}
		if item != "" {
			out = append(out, item)
		}
		if len(out) > maxDepth {
			break
		}
	}
	return out
}

// gadgetUser makes frames of "HEX +OFF" and "ADDRESS", and of further addresses if that list is
// shorter, as without --collect-build-id.
func (s *Set) gadgetUser(buildIDs, addresses string) []Frame {
	var run []Frame
	for _, item := range frameItems(buildIDs) {
		f, ok := addressFrame(item)
		if id, offset, isID := strings.Cut(item, " +"); isID {
			f, ok = s.buildIDFrame([]byte(id), offset)
		}
		if !ok {
			break
		}
		run = append(run, f)
	}
	for i, item := range frameItems(addresses) {
		if i < len(run) {
			continue
		}
		f, ok := addressFrame(item)
		if !ok {
			break
		}
		run = append(run, f)
	}
	return run
}

// gadgetKernel makes frames of a kernel stack, which is printed as names.
func (s *Set) gadgetKernel(text string) []Frame {
	var run []Frame
	for _, item := range frameItems(text) {
		if f, ok := addressFrame(item); ok && strings.HasPrefix(item, "0x") {
			run = append(run, f)
			continue
		}
		run = append(run, Frame{Ref: s.symbol(Symbol{Name: item, Kernel: true}), Status: Named})
	}
	return run
}
