package inspect

import (
	"cmp"
	"context"
	delf "debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"symbolize/analyze/table"
	"symbolize/ingest/files"
	"symbolize/ingest/input/container"
	"symbolize/ingest/object/elf"
)

// InvisibleIDs lists the files with a build ID that kernels cannot read. Its JSON names are an
// interface.
type InvisibleIDs struct {
	Objects  int           `json:"objects"` // files that can be run or loaded
	Files    []InvisibleID `json:"invisible"`
	Problems []Problem     `json:"problems"`
}

// InvisibleID is a file with a build ID that kernels cannot read.
type InvisibleID struct {
	Path    string `json:"path"`
	BuildID string `json:"build_id,omitempty"`
	Kernels string `json:"kernels"` // that cannot: "all", or "before 6.12"
	Reason  string `json:"reason"`
	Fix     string `json:"fix"`
}

// Problem is a file that could not be read.
type Problem struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// Invisible finds files with a build ID that kernels cannot read: the files of paths, and all files
// below directories. The error is from ctx.
func Invisible(ctx context.Context, paths []string) (*InvisibleIDs, error) {
	x := &InvisibleIDs{Files: []InvisibleID{}, Problems: []Problem{}}
	for _, path := range paths {
		if err := x.walk(ctx, path); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// walk checks a file, or all files below a directory. The error is a cancelled context.
func (x *InvisibleIDs) walk(ctx context.Context, root string) error {
	return files.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
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

func (x *InvisibleIDs) problem(path string, err error) {
	x.Problems = append(x.Problems, Problem{Path: path, Error: err.Error()})
}

// file checks a file; only executable files count.
func (x *InvisibleIDs) file(path string) error {
	r, err := files.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	head := make([]byte, len(delf.ELFMAG))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if container.TypeOfHead(head) != container.TypeELF {
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
	v := InvisibleID{Path: path, BuildID: f.ID.Hex(), Kernels: "all", Reason: now.String(),
		Fix: visibilityFix(now, f.IsGo())}
	if now == elf.Seen {
		v.Kernels, v.Reason, v.Fix = "before 6.12", before.String(), visibilityFix(before, f.IsGo())
	}
	x.Files = append(x.Files, v)
	return nil
}

// visibilityFix returns the way to link a program so that kernels see its build ID.
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

// WriteText writes a row for each file, and the counts.
func (x *InvisibleIDs) WriteText(w io.Writer) error {
	if len(x.Files) > 0 {
		t := table.New()
		t.Row("KERNELS", "REASON", "BUILD ID", "PATH", "LINK WITH")
		for _, v := range x.Files {
			t.Row(v.Kernels, v.Reason, cmp.Or(v.BuildID, "-"), v.Path, v.Fix)
		}
		if err := t.Print(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w,
		"%d of %s: kernels do not see the build ID, frames come as addresses\n",
		len(x.Files), table.Count(x.Objects, "object", "objects"))
	return err
}
