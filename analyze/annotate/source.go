package annotate

import (
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/texts"
)

// sourceCheck finds source files that do not match the line table: a file that was changed
// after it was compiled puts wrong text beside the instructions.
type sourceCheck struct {
	files map[string]*checkedFile
}

// checkedFile counts the lines of a file that instructions are of.
type checkedFile struct {
	lines   int // of the file now at its path
	used    int
	blank   int    // without text
	last    uint32 // the highest
	example uint32 // the first without text
}

func newSourceCheck() *sourceCheck { return &sourceCheck{files: make(map[string]*checkedFile)} }

// line notes a line that instructions are of, once.
func (c *sourceCheck) line(l *CodeLine) {
	if l.FileLines == 0 {
		return
	}
	f := c.files[l.File]
	if f == nil {
		f = &checkedFile{lines: l.FileLines}
		c.files[l.File] = f
	}
	f.used++
	f.last = max(f.last, l.Line)
	if int64(l.Line) <= int64(l.FileLines) && isBlank(l.Source) {
		f.blank++
		if f.example == 0 || l.Line < f.example {
			f.example = l.Line
		}
	}
}

// isBlank reports whether a line cannot have code: it is empty or a comment.
func isBlank(line string) bool {
	text := strings.TrimSpace(line)
	return text == "" || strings.HasPrefix(text, "//") ||
		strings.HasPrefix(text, "/*") && strings.Index(text, "*/") == len(text)-2
}

// texts returns a line for each file that cannot be the one that was compiled, sorted.
func (c *sourceCheck) texts() []string {
	var list []string
	for name, f := range c.files {
		why := ""
		switch {
		case int64(f.last) > int64(f.lines):
			why = fmt.Sprintf("there is code of line %d, and the file has only %d", f.last, f.lines)
		case f.blank > 0:
			why = fmt.Sprintf("of %d lines with code %d are empty or comments, as line %d", f.used,
				f.blank, f.example)
		default:
			continue
		}
		list = append(list, "the source does not fit the line table: "+texts.Printable(name)+
			": "+why)
	}
	slices.Sort(list)
	return list
}
