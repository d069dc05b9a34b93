package indexcmd

import (
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/store/indexer"
)

// indexResult is the output of `index --format json`. Its names are an interface.
type indexResult struct {
	Status   string `json:"status"` // "ok", "partial" or "failed"
	Error    string `json:"error,omitempty"`
	Store    string `json:"store"`
	Dirs     uint64 `json:"directories"`
	Files    uint64 `json:"files"`
	ELF      uint64 `json:"elf_files"`
	Objects  uint64 `json:"objects"`
	Read     uint64 `json:"files_read"`
	Bytes    uint64 `json:"bytes_read"`
	Same     uint64 `json:"files_unchanged"`
	Debug    uint64 `json:"debug_files"`
	Modules  uint64 `json:"kernel_modules"`
	Kernels  uint64 `json:"kernels"`
	NoID     uint64 `json:"without_build_id"`
	Nameless uint64 `json:"without_symbols"`

	Functions uint64            `json:"functions"`
	Named     uint64            `json:"bytes_named"`
	Stored    uint64            `json:"bytes_stored"`
	Sources   map[string]uint64 `json:"sources"` // tables made, by kind
	Skipped   map[string]uint64 `json:"skipped"` // files, by reason
	Problems  []indexProblem    `json:"problems"`
	Quality   []indexQuality    `json:"quality,omitempty"` // with --quality
	Captured  *captureResult    `json:"captured,omitempty"`
}

type indexQuality struct {
	BuildID string `json:"build_id"`
	Path    string `json:"path"`
	Quality string `json:"quality"` // "lines", "names only" or "nothing"
	Source  string `json:"source"`  // the best source, "none" for none
}

type indexProblem struct {
	Path  string `json:"path"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

func indexJSON(a *cli.App, path string, s *indexer.Summary, captured *captureResult,
	err error) *indexResult {
	r := &indexResult{
		Status: "ok", Store: path, Dirs: s.Dirs, Files: s.Files, ELF: s.ELF, Objects: s.Objects,
		Read: s.Read, Bytes: s.Raw, Same: s.Unchanged, Debug: s.Debug, Modules: s.Modules,
		Kernels: s.Kernels, NoID: s.NoBuildID, Nameless: s.Nameless,
		Functions: s.Functions, Named: s.Named, Stored: s.Stored,
		Sources: cli.OrEmpty(s.Sources), Skipped: cli.OrEmpty(s.Skipped),
		Problems: []indexProblem{},
		Captured: captured,
	}
	for _, p := range s.Problems {
		r.Problems = append(r.Problems, indexProblem{p.Path, p.Err.Error(), p.Hint})
	}
	for _, q := range s.Quality {
		r.Quality = append(r.Quality, indexQuality{
			q.ID.String(), q.Path, q.Quality.String(), q.Best.String()})
	}
	switch {
	case err != nil:
		r.Status, r.Error = "failed", err.Error()
	case a.Partial:
		r.Status = "partial"
	}
	return r
}
