package cli

import "strings"

// manPage is a text in the macros of man(7).
type manPage struct {
	b     strings.Builder
	begun bool // the section has a paragraph
}

// section begins a section.
func (p *manPage) section(name string) {
	p.b.WriteString("\n\n.SH " + name)
	p.begun = false
}

// paragraph writes a paragraph of formatted text.
func (p *manPage) paragraph(text string) {
	if p.begun {
		p.b.WriteString("\n.PP")
	}
	p.b.WriteString("\n" + text + "\n")
	p.begun = true
}

// example writes lines as they are.
func (p *manPage) example(lines string) {
	p.b.WriteString("\n.EX\n" + manText(strings.Trim(lines, "\n")) + "\n.EE\n")
	p.begun = true
}

// description writes paragraphs, which have empty lines between them. One whose lines are all
// indented is an example, and one that begins with #### a title: cobra's own texts have these.
func (p *manPage) description(text string) {
	for part := range strings.SplitSeq(text, "\n\n") {
		part = strings.Trim(part, "\n")
		title, isTitle := strings.CutPrefix(part, "#### ")
		switch {
		case part == "":
		case isTitle:
			p.b.WriteString("\n.SS " + manText(title))
			p.begun = false
		case indented(part):
			p.example(strings.ReplaceAll("\n"+part, "\n\t", "\n"))
		default:
			p.paragraph(manText(part))
		}
	}
}

// indented reports whether all lines begin with a tab.
func indented(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "\t") {
			return false
		}
	}
	return true
}

// bold sets a text in bold type.
func bold(text string) string { return `\fB` + manText(text) + `\fP` }

// manText escapes a text and sets words in `backquotes` in bold type.
func manText(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, `\`, `\\`), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") { // not a request
			lines[i] = `\&` + line
		}
	}
	parts := strings.Split(strings.Join(lines, "\n"), "`")
	if len(parts)%2 == 0 { // the last one is not closed
		last := len(parts) - 2
		parts[last] += "`" + parts[last+1]
		parts = parts[:last+1]
	}
	for i := 1; i < len(parts); i += 2 {
		parts[i] = `\fB` + parts[i] + `\fR`
	}
	return strings.Join(parts, "")
}
