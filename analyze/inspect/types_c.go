package inspect

import (
	"fmt"
	"io"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/texts"
)

// WriteC writes a header of each BTF: of all its types, or of the requested ones
// with the types they need. Variables, functions and sections are counted in a comment.
func (r *Types) WriteC(w io.Writer) error {
	n := 0
	for i, list := range r.BTF {
		if len(list.Types) == 0 {
			continue
		}
		if n++; n > 1 {
			fmt.Fprintln(w)
		}
		if len(r.BTF) > 1 {
			fmt.Fprintf(w, "/* %s */\n", strings.ReplaceAll(texts.OneLine(list.Source), "*/", "*?"))
		}
		var roots []btf.ID
		if len(r.wants) > 0 {
			for _, x := range list.Types {
				roots = append(roots, x.ID)
			}
		}
		if err := r.blobs[i].Types.WriteC(w, roots, nil); err != nil {
			return fmt.Errorf("%s: %w", r.File, err)
		}
		if roots == nil {
			writeLeft(w, r.blobs[i].Types)
		}
	}
	return nil
}

// writeLeft writes which named things are not in the header of all types.
func writeLeft(w io.Writer, types *btf.Types) {
	variables, functions, sections := types.CFileLeft()
	if variables+functions+sections == 0 {
		return
	}
	fmt.Fprintf(w, "\n/* not in this header: %s, %s, %s; TYPE prints them: \"var NAME\" */\n",
		table.Count(variables, "variable", "variables"), table.Count(functions, "function", "functions"),
		table.Count(sections, "section", "sections"))
}
