package main

import (
	"cmp"
	"context"
	delf "debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/regular"
)

// explained is what `index --explain` says. Its JSON names are an interface.
type explained struct {
	Objects   int            `json:"objects"` // files that can be run or loaded
	Invisible []invisible    `json:"invisible"`
	Problems  []indexProblem `json:"problems"`
}

// invisible is a file whose build ID a kernel does not see.
type invisible struct {
	Path    string `json:"path"`
	BuildID string `json:"build_id,omitempty"`
	Kernels string `json:"kernels"` // which do not see it: "all", or "before 6.12"
	Reason  string `json:"reason"`
	Mend    string `json:"mend"`
}

// runExplain lists the files whose build ID kernels cannot see. Nothing is indexed.
func runExplain(ctx context.Context, a *app, o *indexOptions, paths []string) error {
	x := explained{Invisible: []invisible{}, Problems: []indexProblem{}}
	for _, path := range paths {
		if err := x.walk(ctx, path); err != nil {
			return err
		}
	}
	a.partial = len(x.Problems) > 0
	if o.format == formatJSON {
		return ingest.WriteJSON(a.stdout(), x)
	}
	for i, p := range x.Problems {
		if i == maxProblemLines {
			a.warn(fmt.Sprintf("… and %d more like these", len(x.Problems)-i),
				"--format json lists them all")
			break
		}
		a.warn(p.Error, "")
	}
	return x.writeText(a.stdout())
}

// walk looks at a file, or at all below a directory. The error is a cancelled context.
func (x *explained) walk(ctx context.Context, root string) error {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real // a link that is named is followed, others are of files met elsewhere
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			x.problem(path, err)
		case d.Type().IsRegular() || path == root && !d.IsDir():
			if err := x.file(path); err != nil {
				x.problem(path, err)
			}
		}
		return nil
	})
}

func (x *explained) problem(path string, err error) {
	x.Problems = append(x.Problems, indexProblem{Path: path, Error: err.Error()})
}

// file looks at a file, and passes over what is not mapped to be run.
func (x *explained) file(path string) error {
	r, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	head := make([]byte, len(delf.ELFMAG))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !elf.IsELF(head) {
		return nil
	}
	fi, err := r.Stat()
	if err != nil {
		return err
	}
	f, err := elf.Open(path, r, fi.Size())
	if err != nil {
		return err
	}
	runs := f.Type == delf.ET_EXEC || f.Type == delf.ET_DYN
	if !runs || !f.HasCode() || f.IsDebugOnly() || f.IsKernelImage() {
		return nil
	}
	x.Objects++
	now, before, err := f.KernelIDVisibility()
	if err != nil || before == elf.Seen {
		return err
	}
	v := invisible{Path: path, BuildID: f.ID.Hex(), Kernels: "all", Reason: now.String(),
		Mend: visibilityFix(now, f.IsGo())}
	if now == elf.Seen {
		v.Kernels, v.Reason, v.Mend = "before 6.12", before.String(), visibilityFix(before, f.IsGo())
	}
	x.Invisible = append(x.Invisible, v)
	return nil
}

// visibilityFix says how to link a program so that kernels see its build ID.
func visibilityFix(s elf.IDVisibility, isGo bool) string {
	// Go's own linker writes a note, with -B too, but no PT_NOTE that covers it (1.26).
	if isGo && (s == elf.NoNote || s == elf.OutsideNotes) {
		return "go build -ldflags='-linkmode=external -B gobuildid'"
	}
	switch s {
	case elf.NoNote:
		return "gcc -Wl,--build-id"
	case elf.OutsideNotes:
		return "gcc -Wl,--build-id, and a linker script that puts .note.gnu.build-id into a PT_NOTE"
	case elf.LongID:
		return "gcc -Wl,--build-id=sha1"
	case elf.LateHeader:
		return "a linker script with fewer program headers, PT_NOTE among the first 256"
	}
	return "gcc -Wl,--build-id with the linker's own layout: notes at the start; or Linux 6.12"
}

func (x *explained) writeText(w io.Writer) error {
	if len(x.Invisible) > 0 {
		t := table.New()
		t.Row("KERNELS", "REASON", "BUILD ID", "PATH", "LINK WITH")
		for _, v := range x.Invisible {
			t.Row(v.Kernels, v.Reason, cmp.Or(v.BuildID, "-"), v.Path, v.Mend)
		}
		if err := t.Print(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w,
		"%d of %s: kernels do not see the build ID, frames come as addresses\n",
		len(x.Invisible), plural(uint64(x.Objects), "object", "objects"))
	return err
}
