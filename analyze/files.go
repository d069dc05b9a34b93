package analyze

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/store"
	"symbolize/store/indexer"
)

// kernelPaths are where distributions put kernel images with symbols; %s is the release.
var kernelPaths = [...]string{"/usr/lib/debug/boot/vmlinux-%s", "/boot/vmlinux-%s",
	"/usr/lib/debug/lib/modules/%s/vmlinux", "/usr/lib/modules/%s/vmlinux",
	"/lib/modules/%s/vmlinux", "/usr/lib/modules/%s/build/vmlinux",
	"/lib/modules/%s/build/vmlinux"}

// kernelFiles returns the build IDs of the kernels of a release that a view knows by their
// paths, sorted, each once.
func kernelFiles(v store.View, release string) (ids []buildid.ID) {
	for _, format := range kernelPaths {
		if id := resolve.PathID(v, fmt.Sprintf(format, release)); !id.IsZero() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, buildid.ID.Compare)
	return slices.Compact(ids)
}

// FilesNamed returns the build IDs of the files that a name in text without build IDs may be of,
// sorted, each once: files of Options.With at this path, or with its last element for a name. For
// "vmlinux-RELEASE" without such files it returns the kernels of that release in the store, by
// their paths, and with Options.Local else the running kernel. With Options.TrustPaths it else
// returns the file that the store knows at an absolute path, or the file now at that path, which is
// indexed.
func (f Search) FilesNamed(ctx context.Context, name string) ([]buildid.ID, error) {
	s := f.session
	ids := s.overlay.Named(name)
	if release, ok := strings.CutPrefix(name, "vmlinux-"); ok && len(ids) == 0 {
		ids = kernelFiles(s.view, release)
		if len(ids) == 0 && s.finder != nil {
			if id := s.finder.KernelOfRelease(release); !id.IsZero() {
				ids = []buildid.ID{id}
			}
		}
	}
	if len(ids) > 0 || !s.opts.TrustPaths || !path.IsAbs(name) {
		return ids, nil
	}
	if id := resolve.PathID(s.view, name); !id.IsZero() {
		return []buildid.ID{id}, nil
	}
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
		return nil, nil
	}
	sink := fileSink{Sink: s.overlay, file: path.Clean(name)}
	sum, err := indexer.Index(ctx, []string{name}, nil,
		func() (store.Sink, error) { return &sink, nil }, indexer.Options{
			Workers: s.opts.Workers, MaxMemory: s.opts.MaxMemory, NoUnwind: true})
	if err != nil {
		return nil, err
	}
	if sink.id.IsZero() { // there is no object now: nothing is lost
		for _, p := range sum.Problems {
			s.warnError(p, p.Hint, false)
		}
		return nil, nil
	}
	s.problems(sum.Problems)
	return []buildid.ID{sink.id}, nil
}

// fileSink keeps the build ID of one file, and no rows: they would replace the rows of
// other files in its directory.
type fileSink struct {
	store.Sink
	file string
	id   buildid.ID
}

// PutDir implements store.Sink.
func (f *fileSink) PutDir(dir string, rows store.DirRows) error {
	if row := rows.Find(path.Base(f.file)); row != nil && dir == path.Dir(f.file) {
		f.id = row.ID
	}
	return nil
}
