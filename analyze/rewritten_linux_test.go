package analyze_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"symbolize/analyze"
	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/store/local"
)

// TestFileReplaced: a program that was recorded without a build ID in its mapping, and the file that
// is at its path now. The recording is a copy, made later; the clocks of the host show when it
// ended.
func TestFileReplaced(t *testing.T) {
	const sec = 1_000_000_000
	dir := t.TempDir()
	path := filepath.Join(dir, "fixed")
	program := must.Read(t, "../fixtures/objects/bin/fixed")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := fi.Sys().(*syscall.Stat_t)
	for _, tc := range []struct {
		name  string
		inode uint64
		ended int64 // wall clock, after the file was made, s
		id    bool
		warn  string
	}{
		{name: "made after the recording", inode: st.Ino + 1, ended: -10, id: true},
		{name: "made before the recording ended", inode: st.Ino + 1, ended: 30,
			warn: "was replaced during the recording, or processes in containers saw other files there"},
		{name: "written to during the recording", inode: st.Ino, ended: 30, id: true,
			warn: path + " was written to during the recording: 100.00% of the samples end in the file"},
		{name: "written to before the recording", inode: st.Ino, ended: 1000, id: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			f.FeatureString(perfbuild.FeatureHostname, "here")
			f.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: fixedID(t), Filename: path})
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x401000, Len: 0x1000, PgOff: 0x1000, Ino: tc.inode,
				Maj: uint32(st.Dev >> 8 & 0xfff), Min: uint32(st.Dev & 0xff), Filename: path},
				perfbuild.At{PID: 7, TID: 7, Time: 100 * sec})
			f.Sample(perfbuild.Sample{PID: 7, TID: 7, Time: 100 * sec, IP: 0x401150})
			f.Sample(perfbuild.Sample{PID: 7, TID: 7, Time: 160 * sec, IP: 0x401150})
			data := filepath.Join(t.TempDir(), "perf.data")
			must.Write(t, data, f.Bytes())
			now := fi.ModTime().UnixNano() + 10_000*sec
			up := uint64(10_000-tc.ended+160) * sec
			s, err := analyze.Open(t.Context(), analyze.Options{
				Local: &local.Options{Host: true, DebugRoots: []string{}},
				Naming: analyze.Naming{Hostname: "here", Clocks: func() (bundle.Clocks, error) {
					return bundle.Clocks{Perf: up, Monotonic: up, Boottime: up, Realtime: uint64(now)}, nil
				}}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			p, err := s.Load(t.Context(), data)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for i := range p.Objects {
				found = found || p.Objects[i].IDSource == ingest.IDByPath
			}
			if found != tc.id {
				t.Errorf("build ID %t: %+v", found, p.Objects)
			}
			text := ""
			for _, w := range p.Stats.Warnings {
				text += w.Text
			}
			if (text != "") != (tc.warn != "") || !strings.Contains(text, tc.warn) {
				t.Errorf("warning %q, want %q", text, tc.warn)
			}
		})
	}
}

// fixedID is the build ID of fixtures/objects/bin/fixed.
func fixedID(t *testing.T) []byte {
	t.Helper()
	id, err := buildid.Parse("25d5bede07880a4717e27339b881f99c414460ba")
	if err != nil {
		t.Fatal(err)
	}
	return id.Bytes()
}
