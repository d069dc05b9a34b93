package resolve

import (
	"cmp"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/sideband"
	"symbolize/store"
)

func TestIdentifyFile(t *testing.T) {
	o := store.NewOverlay()
	row := store.PathRow{Name: "x", ID: id(1), Dev: 0xfe01, Inode: 42, Gen: 7, MtimeNs: 100,
		CtimeNs: 200}
	if err := o.PutDir("/usr/bin", store.DirRows{row, {Name: "script", Dev: 0xfe01,
		Inode: 43}}); err != nil {
		t.Fatal(err)
	}
	good := sideband.ObjectQuery{Kind: ingest.ELF, Host: "here", EndNanos: 300, EndKnown: true,
		File: ingest.FileRef{Path: "/usr/bin/x", Major: 0xfe, Minor: 1, Inode: 42, Generation: 7}}
	with := func(change func(*sideband.ObjectQuery)) sideband.ObjectQuery {
		q := good
		change(&q)
		return q
	}
	tests := []struct {
		name   string
		query  sideband.ObjectQuery
		proven bool
	}{
		{name: "same", query: good, proven: true},
		{name: "path with dots",
			query:  with(func(q *sideband.ObjectQuery) { q.File.Path = "/usr/lib/../bin//x" }),
			proven: true},
		{name: "generation not recorded",
			query:  with(func(q *sideband.ObjectQuery) { q.File.Generation = 0 }),
			proven: true},
		{name: "changed at the very end",
			query: with(func(q *sideband.ObjectQuery) { q.EndNanos = 200 }), proven: true},
		{name: "other host", query: with(func(q *sideband.ObjectQuery) { q.Host = "there" })},
		{name: "host not known", query: with(func(q *sideband.ObjectQuery) { q.Host = "" })},
		{name: "other device", query: with(func(q *sideband.ObjectQuery) { q.File.Minor = 2 })},
		{name: "other inode", query: with(func(q *sideband.ObjectQuery) { q.File.Inode = 41 })},
		{name: "inode not recorded",
			query: with(func(q *sideband.ObjectQuery) { q.File.Inode = 0 })},
		{name: "other generation",
			query: with(func(q *sideband.ObjectQuery) { q.File.Generation = 8 })},
		{name: "changed since", query: with(func(q *sideband.ObjectQuery) { q.EndNanos = 199 })},
		{name: "changed after it was mapped",
			query: with(func(q *sideband.ObjectQuery) { q.MappedNanos = 199 })},
		{name: "mapped later", query: with(func(q *sideband.ObjectQuery) { q.MappedNanos = 201 }),
			proven: true},
		{name: "end not known", query: with(func(q *sideband.ObjectQuery) { q.EndNanos = 0 })},
		{name: "only the time of a copy is known",
			query: with(func(q *sideband.ObjectQuery) { q.EndKnown = false })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want, wantID := ingest.IDNone, buildid.ID{}
			if tt.proven {
				want, wantID = ingest.IDProven, id(1)
			}
			if got, source := Identify(o,
				IdentifyOptions{Hostname: "here"})(tt.query); got != wantID || source != want {
				t.Errorf("%s by %d", got, source)
			}
			if !tt.proven {
				want = ingest.IDTrusted
			}
			if got, source := Identify(o, IdentifyOptions{Hostname: "here",
				TrustPaths: true})(tt.query); got != id(1) || source != want {
				t.Errorf("with trust: %s by %d", got, source)
			}
		})
	}
	for name, q := range map[string]sideband.ObjectQuery{
		"no row":       with(func(q *sideband.ObjectQuery) { q.File.Path = "/usr/bin/y" }),
		"no directory": with(func(q *sideband.ObjectQuery) { q.File.Path = "/opt/x" }),
		"no object":    with(func(q *sideband.ObjectQuery) { q.File.Path = "/usr/bin/script" }),
		"relative":     with(func(q *sideband.ObjectQuery) { q.File.Path = "x" }),
		"kernel":       with(func(q *sideband.ObjectQuery) { q.Kind = ingest.Kernel }),
	} {
		if got, source := Identify(o, IdentifyOptions{Hostname: "here",
			TrustPaths: true})(q); !got.IsZero() || source != ingest.IDNone {
			t.Errorf("%s: %s by %d", name, got, source)
		}
	}
	if got, _ := Identify(nil, IdentifyOptions{TrustPaths: true})(good); !got.IsZero() {
		t.Errorf("without a store: %s", got)
	}
}

// TestIdentifyByPath: the store's row of a file confirms or refutes the ID that the
// capture has for its path.
func TestIdentifyByPath(t *testing.T) {
	const hour = 3600e9
	o := store.NewOverlay()
	if err := o.PutDir("/usr/bin", store.DirRows{
		{Name: "x", ID: id(1), Dev: 0xfe01, Inode: 42, Gen: 7, MtimeNs: 100, CtimeNs: 200},
		{Name: "z", ID: id(1), Dev: 0xfe01, Inode: 42, Gen: 7, MtimeNs: 100, CtimeNs: hour},
	}); err != nil {
		t.Fatal(err)
	}
	file := ingest.FileRef{Path: "/usr/bin/x", Major: 0xfe, Minor: 1, Inode: 42, Generation: 7}
	other, device, renamed := file, file, file
	other.Inode, device.Minor = 43, 40
	renamed.Path, renamed.Inode = "/usr/bin/z", 43
	for _, tc := range []struct {
		name      string
		query     sideband.ObjectQuery
		guessed   bool // the end is that of a copy
		id        buildid.ID
		source    ingest.IDSource
		rewritten bool
	}{
		{name: "only the time of a copy is known", query: sideband.ObjectQuery{File: other, ByPath: id(1)},
			guessed: true, id: id(1), source: ingest.IDByPath},
		{name: "replaced, and linked when the recording ended",
			query: sideband.ObjectQuery{File: other, ByPath: id(1), EndNanos: 150}, id: buildid.ID{},
			source: ingest.IDNone},
		{name: "written to after it was mapped", query: sideband.ObjectQuery{File: file, ByPath: id(1),
			MappedNanos: 99}, id: id(1), source: ingest.IDByPath, rewritten: true},
		{name: "written to after the recording", query: sideband.ObjectQuery{File: file, ByPath: id(1),
			MappedNanos: 50, EndNanos: 99}, id: id(1), source: ingest.IDByPath},
		{name: "written to before it was mapped", query: sideband.ObjectQuery{File: file, ByPath: id(1),
			MappedNanos: 100}, id: id(1), source: ingest.IDByPath},
		{name: "the same", query: sideband.ObjectQuery{File: file, ByPath: id(1)}, id: id(1),
			source: ingest.IDByPath},
		{name: "proven to be another", query: sideband.ObjectQuery{File: file, ByPath: id(2)},
			id:     id(1),
			source: ingest.IDProven},
		{name: "replaced, and read then", query: sideband.ObjectQuery{File: other, ByPath: id(1)},
			id:     buildid.ID{},
			source: ingest.IDNone},
		{name: "replaced since",
			query: sideband.ObjectQuery{File: other, ByPath: id(1), EndNanos: 99}, id: id(1),
			source: ingest.IDByPath},
		{name: "renamed to the path since",
			query: sideband.ObjectQuery{File: renamed, ByPath: id(1), EndNanos: 1000}, id: id(1),
			source: ingest.IDByPath},
		{name: "replaced, another was read",
			query: sideband.ObjectQuery{File: other, ByPath: id(2)}, id: id(2),
			source: ingest.IDByPath},
		{name: "in overlayfs", query: sideband.ObjectQuery{File: device, ByPath: id(1)},
			id: id(1), source: ingest.IDByPath},
		{name: "of another host",
			query: sideband.ObjectQuery{File: other, ByPath: id(1), Host: "there"}, id: id(1),
			source: ingest.IDByPath},
		{name: "inode not recorded",
			query: sideband.ObjectQuery{File: ingest.FileRef{Path: "/usr/bin/x"},
				ByPath: id(1)}, id: id(1), source: ingest.IDByPath},
		{name: "no row",
			query: sideband.ObjectQuery{File: ingest.FileRef{Path: "/usr/bin/y", Inode: 1},
				ByPath: id(1)}, id: id(1), source: ingest.IDByPath},
	} {
		tc.query.Kind = ingest.ELF
		tc.query.Host = cmp.Or(tc.query.Host, "here")
		tc.query.EndNanos = cmp.Or(tc.query.EndNanos, 300)
		tc.query.EndKnown = !tc.guessed
		rewritten := false
		got, source := Identify(o, IdentifyOptions{Hostname: "here", TrustPaths: true,
			Rewritten: func(string) { rewritten = true }})(tc.query)
		if got != tc.id || source != tc.source || rewritten != tc.rewritten {
			t.Errorf("%s: %s by %d, written to %t; want %s by %d, %t", tc.name, got, source, rewritten,
				tc.id, tc.source, tc.rewritten)
		}
	}
	shared := sideband.ObjectQuery{Kind: ingest.ELF, Host: "there", File: file, Shared: true}
	if got, _ := Identify(o, IdentifyOptions{TrustPaths: true})(shared); !got.IsZero() {
		t.Errorf("a path of two files is trusted: %s", got)
	}
}

func TestIdentifyVDSO(t *testing.T) {
	const class32, class64 = 1, 2
	o := store.NewOverlay()
	contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.Kernel, VDSO: []buildid.ID{id(11)}}, nil)
	contribute(t, o, store.Manifest{ID: id(2), Kind: ingest.Kernel, VDSO: []buildid.ID{id(12), id(13)}},
		nil)
	contribute(t, o, store.Manifest{ID: id(3), Kind: ingest.Kernel, Class: class32,
		VDSO: []buildid.ID{id(12), id(13)}}, nil)
	contribute(t, o, store.Manifest{ID: id(4), Kind: ingest.Kernel, VDSO: []buildid.ID{id(13), id(14)}},
		nil)
	contribute(t, o, store.Manifest{ID: id(5), Kind: ingest.Kernel}, nil)
	contribute(t, o, store.Manifest{ID: id(12), Kind: ingest.VDSO, Class: class32}, nil)
	contribute(t, o, store.Manifest{ID: id(13), Kind: ingest.VDSO, Class: class64}, nil)
	contribute(t, o, store.Manifest{ID: id(14), Kind: ingest.VDSO, Class: class64}, nil)
	for kernel, want := range map[buildid.ID]buildid.ID{
		id(1): id(11), id(2): id(13), id(3): id(12), id(4): {}, id(5): {}, id(6): {}, {}: {},
	} {
		got, source := Identify(o, IdentifyOptions{})(sideband.ObjectQuery{Kind: ingest.VDSO,
			Kernel: kernel})
		if got != want || (source == ingest.IDDerived) != !want.IsZero() {
			t.Errorf("kernel %s: %s by %d, want %s", kernel, got, source, want)
		}
	}
	for kernel, want := range map[buildid.ID]buildid.ID{id(1): {}, id(2): id(12), id(4): {}} {
		got, _ := Identify(o, IdentifyOptions{})(sideband.ObjectQuery{Kind: ingest.VDSO,
			Kernel: kernel, File: ingest.FileRef{Path: ingest.VDSO32Path}})
		if got != want {
			t.Errorf("32 bits, kernel %s: %s, want %s", kernel, got, want)
		}
	}
}
