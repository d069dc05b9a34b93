package main

import (
	"fmt"
	"io"
	"strings"

	"symbolize/ingest/object/btf"
)

// writeC writes a header of each BTF: of all its types, or of those that were asked for
// with what they need. What headers do not have is counted in a comment.
func (r *btfReport) writeC(w io.Writer, blobs []btfBlob) error {
	n := 0
	for i, list := range r.BTF {
		if len(list.Types) == 0 {
			continue
		}
		if n++; n > 1 {
			fmt.Fprintln(w)
		}
		if len(r.BTF) > 1 {
			fmt.Fprintf(w, "/* %s */\n", strings.ReplaceAll(oneLine(list.Source), "*/", "*?"))
		}
		var roots []btf.ID
		if len(r.wants) > 0 {
			for _, x := range list.Types {
				roots = append(roots, x.ID)
			}
		}
		if err := blobs[i].types.WriteC(w, roots, nil); err != nil {
			return fmt.Errorf("%s: %w", r.File, err)
		}
		if roots == nil {
			writeLeft(w, blobs[i].types)
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
	count := func(n int, one, many string) string { return plural(uint64(n), one, many) }
	fmt.Fprintf(w, "\n/* not in this header: %s, %s, %s; TYPE prints them: \"var NAME\" */\n",
		count(variables, "variable", "variables"), count(functions, "function", "functions"),
		count(sections, "section", "sections"))
}
