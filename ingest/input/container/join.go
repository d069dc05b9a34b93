package container

import (
	"context"
	"fmt"
	"io"
	"slices"

	"symbolize/ingest/format/perfdata"
)

// joined presents ranges of files as one, after one another.
type joined struct {
	parts []part
	size  int64
}

// part is a range of a file, from an offset of the whole.
type part struct {
	segment
	start int64
}

func (j *joined) add(s segment) {
	j.parts = append(j.parts, part{s, j.size})
	j.size += s.data.Size
}

// find returns the part that has an offset, which must be in one.
func (j *joined) find(offset int64) *part {
	i, found := slices.BinarySearchFunc(j.parts, offset, func(p part, at int64) int {
		return int(min(max(p.start-at, -1), 1))
	})
	if !found {
		i--
	}
	// Empty parts start where the next one does.
	for i+1 < len(j.parts) && j.parts[i+1].start <= offset {
		i++
	}
	return &j.parts[i]
}

// ReadAt implements io.ReaderAt.
func (j *joined) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		if off < 0 || off >= j.size {
			return n, io.EOF
		}
		p := j.find(off)
		left := p.start + p.data.Size - off
		got, err := p.r.ReadAt(b[n:n+int(min(int64(len(b)-n), left))], p.data.Offset+off-p.start)
		n, off = n+got, off+int64(got)
		if err != nil && !(err == io.EOF && off == p.start+p.data.Size) {
			return n, err
		}
	}
	return n, nil
}

// place is the place of an offset in messages.
func (j *joined) place(offset int64) (name string, at int64) {
	if len(j.parts) == 0 {
		return "", offset
	}
	p := j.find(min(offset, max(j.size-1, 0)))
	return p.name, p.data.Offset + offset - p.start
}

// join makes one range of the records of all segments. Each is cut off at its last whole
// record, so that the next one can be read.
func (p *Perf) join(ctx context.Context, f *perfdata.File, segments []segment) error {
	var all joined
	var warnings []error
	for i := range segments {
		s := segments[i]
		end, damage, err := wholeRecords(ctx, s.file(f))
		if err != nil {
			return err
		}
		if damage != nil {
			warnings = append(warnings, notTheRest(damage))
		}
		s.data.Size = end - s.data.Offset
		all.add(s)
	}
	p.File = f.WithRecords(&all, perfdata.Section{Size: all.size}, all.place)
	p.File.Parts = all.sections()
	p.File.Warn(warnings...)
	return nil
}

// sections returns the ranges of the parts.
func (j *joined) sections() (list []perfdata.Section) {
	for i := range j.parts {
		list = append(list, perfdata.Section{Offset: j.parts[i].start, Size: j.parts[i].data.Size})
	}
	return list
}

// wholeRecords returns the end of the last whole record, and the error after it.
func wholeRecords(ctx context.Context, f *perfdata.File) (end int64, damage, err error) {
	end = f.Data.Offset
	r := f.AllRecords()
	for n := 0; r.Next() && r.Err() == nil; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return 0, nil, ctx.Err()
		}
		end = r.Offset()
	}
	return end, r.Err(), nil
}

// checkEvery is the number of records between checks of the context.
const checkEvery = 1 << 16

// notTheRest is the warning about damage that ends the records of a file.
func notTheRest(damage error) error {
	return fmt.Errorf("%w; all records before it are used", damage)
}
