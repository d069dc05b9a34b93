package batch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze"
	"symbolize/ingest/files"
	"symbolize/ingest/input/container"
	"symbolize/ingest/texts"
)

// Captures lists the captures that paths name, sorted, each once: files, and files below
// directories, without hidden files and directories. A recording that is a directory is one
// capture.
func Captures(paths []string) ([]string, error) {
	var list []string
	for _, root := range paths {
		err := files.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case path != root && strings.HasPrefix(d.Name(), ".") && d.IsDir():
				return fs.SkipDir
			case d.IsDir() && isRecording(path):
				list = append(list, path)
				return fs.SkipDir
			case d.IsDir(), path != root && strings.HasPrefix(d.Name(), "."):
				return nil
			}
			list = append(list, path)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// WithRecordings adds the recordings that the commands of bundles wrote, where the list has no other
// capture in the bundle's directory.
func WithRecordings(captures []string) []string {
	bundles, served := bundlesByDir(captures)
	var in analyze.Inputs
	defer in.Close()
	list := slices.Clone(captures)
	for dir, paths := range bundles {
		for _, b := range paths {
			if !served[dir] {
				if r := in.Recording(context.Background(), b); r != "" {
					list = append(list, r)
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Profiles lists the inputs of a report, sorted, each once: the files that paths name, and the
// profiles and captures among the files below directories, as Captures walks them. A file with the
// name of a profile is listed whatever it has, so that an empty or damaged one is reported.
func Profiles(paths []string) ([]string, error) {
	list, err := Captures(paths)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(path string) bool {
		if slices.Contains(paths, path) || strings.HasSuffix(path, FormatPprof) {
			return false
		}
		switch container.TypeOfPath(path) {
		case container.TypePprof, container.TypePerfData, container.TypeOTLP, container.TypeGzip:
			return false
		}
		return true
	})
	if len(list) == 0 {
		return nil, texts.WithHint(fmt.Errorf("%s: no profile in it", texts.Printable(paths[0])),
			"`symbolize batch run -o DIR CAPTURES` makes profiles")
	}
	return list, nil
}

// isRecording reports whether a directory is one of perf's: perf record --threads and --kcore.
func isRecording(dir string) bool {
	fi, err := os.Stat(filepath.Join(dir, "data"))
	return err == nil && fi.Mode().IsRegular()
}

// ReadList reads paths, one a line.
func ReadList(r io.Reader) ([]string, error) {
	var list []string
	in := bufio.NewScanner(r)
	for in.Scan() {
		if line := in.Text(); line != "" {
			list = append(list, line)
		}
	}
	return list, in.Err()
}

// Shard is a share of the work: of N equal ones, the number I, from 0.
type Shard struct{ I, N int }

// ParseShard reads "i/n".
func ParseShard(s string) (Shard, error) {
	is, ns, ok := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(is)
	n, err2 := strconv.Atoi(ns)
	if !ok || err1 != nil || err2 != nil || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("shard %q: it is I/N, with 0 <= I < N", s)
	}
	return Shard{i, n}, nil
}

// arrayVariables are the environment variables by which engines number the tasks of an array, and
// those with the count of them.
var arrayVariables = []struct{ index, first, count string }{
	{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"},
	{"JOB_COMPLETION_INDEX", "", ""},
	{"AWS_BATCH_JOB_ARRAY_INDEX", "", "AWS_BATCH_JOB_ARRAY_SIZE"},
	{"CLOUD_RUN_TASK_INDEX", "", "CLOUD_RUN_TASK_COUNT"},
	{"NOMAD_ALLOC_INDEX", "", ""},
}

// TaskIndex returns the number of this task in the array of an engine, from 0, and the count of
// tasks, 0 if the engine does not report it. ok is false outside of an array.
func TaskIndex(getenv func(string) string) (index, count int, ok bool) {
	for _, v := range arrayVariables {
		i, err := strconv.Atoi(getenv(v.index))
		if err != nil {
			continue
		}
		if first, err := strconv.Atoi(getenv(v.first)); v.first != "" && err == nil {
			i -= first
		}
		n, err := strconv.Atoi(getenv(v.count))
		if v.count == "" || err != nil {
			n = 0
		}
		return i, n, true
	}
	return 0, 0, false
}

// Of returns the elements of a list that are the share's. The zero Shard is everything.
func Of[T any](s Shard, list []T) []T {
	if s.N == 0 {
		return list
	}
	var out []T
	for i := s.I; i < len(list); i += s.N {
		out = append(out, list[i])
	}
	return out
}
