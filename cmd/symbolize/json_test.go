package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
)

// jsonPages are the pages that describe JSON: the text of a section, up to the next heading, by
// section.
func jsonPages(t *testing.T) (sections []string) {
	t.Helper()
	for _, page := range []string{"../../docs/json.md", "../../docs/json-files.md"} {
		text := must.Read(t, page)
		sections = append(sections, strings.Split(string(text), "\n## ")[1:]...)
	}
	return sections
}

// documented returns the keys that the sections with a schema name, and whether there is one. A
// section that mentions another schema has its keys, too.
func documented(sections []string, schema string) (keys map[string]bool, ok bool) {
	keys = make(map[string]bool)
	name, _, _ := strings.Cut(schema, "/")
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, s := range sections {
		named := strings.Contains(s, "`"+schema+"`") || strings.Contains(s, "`"+name+"`")
		if !named && !strings.HasPrefix(s, "Words") {
			continue
		}
		ok = ok || named
		for _, m := range quoted.FindAllStringSubmatch(s, -1) {
			keys[m[1]] = true
			if other, isSchema := strings.CutSuffix(m[1], "/1"); isSchema && other != name && named {
				for _, o := range sections {
					if title, _, _ := strings.Cut(o, "\n"); strings.Contains(title, "`"+m[1]+"`") {
						for _, k := range quoted.FindAllStringSubmatch(o, -1) {
							keys[k[1]] = true
						}
					}
				}
			}
		}
	}
	return keys, ok
}

// missingKeys adds the keys of a JSON value that are not documented. Keys below `lost.*` are names.
func missingKeys(v any, keys, missing map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			missingKeys(x, keys, missing)
		}
	case map[string]any:
		for k, x := range v {
			switch {
			case keys[k+".*"]:
			case keys[k] || k == "schema":
				missingKeys(x, keys, missing)
			default:
				missing[k] = true
			}
		}
	}
}

// TestJSONKeys runs each command that prints JSON: its keys are in the manual's page.
func TestJSONKeys(t *testing.T) {
	sections, dir := jsonPages(t), t.TempDir()
	store, file := filepath.Join(dir, "store"), filepath.Join(dir, "file")
	in := func(name string) string { return filepath.Join("../../fixtures", name) }
	capture, bundle := in("captures/fixed.data"), in("formats/0.4.0/bundle.data")
	for _, day := range []string{"2026-11-01", "2026-11-02"} {
		path := filepath.Join(dir, "nights", day, "a.data")
		data, err := os.ReadFile(capture)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const asJSON = "--format=json"
	for _, c := range []struct {
		schema string
		args   []string
	}{
		{schema: "index/1", args: []string{"index", "--quality", in("objects"), in("captures/bpf-lines.data")}},
		{schema: "index-explain/1", args: []string{"index", "--explain", in("objects")}},
		{schema: "info/1", args: []string{"info", bundle}},
		{schema: "info/1", args: []string{"info", in("captures/bpf-lines.data")}},
		{schema: "info/1", args: []string{"info", in("captures/mixed-buildid.data")}},
		{schema: "info/1", args: []string{"info", in("objects/bin/fixed")}},
		{schema: "info/1", args: []string{"info", "../../ingest/object/bpfobj/testdata/count.bpf.o"}},
		{schema: "info/1", args: []string{"info", in("unwound/bare.data")}},
		{schema: "btf/1", args: []string{"btf", in("maps/kinds.bpf.o"), "struct bits"}},
		{schema: "map/1", args: []string{"map", in("maps/per_cpu.json")}},
		{schema: "map-list/1", args: []string{"map", bundle}},
		{schema: "map-object/1", args: []string{"map", in("maps/kinds.bpf.o")}},
		{schema: "map-symbols/1", args: []string{"map", "--symbols", "key", "--kallsyms", in("drops/kallsyms"),
			in("drops/locations.json")}},
		{schema: "top/1", args: []string{"top", "--by", "file", capture}},
		{schema: "top/1", args: []string{"top", "--focus", "main", in("captures/mixed-buildid.data")}},
		{schema: "top/1", args: []string{"top", in("unwound/bare.data")}},
		{schema: "tree/1", args: []string{"tree", "--chains", "proven", "--symfs", in("callers"), in("callers/callers.data")}},
		{schema: "missing/1", args: []string{"missing", "--chains", "proven", "--symfs", in("callers"), in("callers/callers.data")}},
		{schema: "info/1", args: []string{"info", "--chains", "proven", in("callers/callers.data")}},
		{schema: "tree/1", args: []string{"tree", "-n", "1", capture}},
		{schema: "peek/1", args: []string{"peek", "collatz", capture}},
		{schema: "annotate/1", args: []string{"annotate", capture}},
		{schema: "annotate/1", args: []string{"annotate", "--types", "--with", in("types"), in("types/access.data")}},
		{schema: "annotate/1", args: []string{"annotate", "-n", "0", in("captures/bpf-lines.data")}},
		{schema: "diff/1", args: []string{"diff", "--fail-above", "0.05", capture, capture}},
		{schema: "diff-struct/1", args: []string{"diff", "--struct", "struct point", in("maps/kinds.bpf.o"), in("maps/kinds.bpf.o")}},
		{schema: "trend/1", args: []string{"trend", filepath.Join(dir, "nights")}},
		{schema: "heatmap/1", args: []string{"timeline", "--by", "thread", in("captures/bpf.data")}},
		{schema: "missing/1", args: []string{"missing", in("captures/mixed-buildid.data")}},
		{schema: "missing/1", args: []string{"missing", in("captures/go.data")}},
		{schema: "missing-by/1", args: []string{"missing", "--by", "comm", capture}},
		{schema: "missing-over/1", args: []string{"missing", "--over", filepath.Join(dir, "nights")}},
		{schema: "fetch/1", args: []string{"fetch", "--dry-run", in("captures/mixed-buildid.data")}},
		{schema: "version/1", args: []string{"version"}},
		{schema: "store-ls/1", args: []string{"store", "ls"}},
		{schema: "store-show/1", args: []string{"store", "show", "25d5bede07880a47"}},
		{schema: "store-stats/1", args: []string{"store", "stats"}},
		{schema: "store-verify/1", args: []string{"store", "verify"}},
		{schema: "store-digest/1", args: []string{"store", "digest"}},
		{schema: "store-gc/1", args: []string{"store", "gc", "--dry-run", "--unreferenced"}},
		{schema: "store-rebuild/1", args: []string{"store", "rebuild"}},
		{schema: "store-export/1", args: []string{"store", "export", "-o", file}},
		{schema: "store-import/1", args: []string{"store", "import", file}},
	} {
		env, stdout, stderr := inProcess(slices.Concat(c.args, []string{asJSON, "--store", store})...)
		env.Getenv = func(name string) string {
			if name == "DEBUGINFOD_CACHE_PATH" {
				return dir
			}
			return hermetic(name)
		}
		if code := Main(t.Context(), env); code != cli.OK {
			t.Errorf("%q: status %d\n%s", c.args, code, stderr)
			continue
		}
		checkKeys(t, sections, c.schema, stdout.Bytes())
	}
	for _, args := range [][]string{
		{"resolve", "-o", file, capture},
		{"batch", "run", "-o", filepath.Join(dir, "out"), filepath.Join(dir, "nights")},
	} {
		summary := filepath.Join(dir, "summary.json")
		env, _, stderr := inProcess(slices.Concat(args, []string{"--summary", summary, "--store", store})...)
		if code := Main(t.Context(), env); code != cli.OK {
			t.Fatalf("%q: status %d\n%s", args, code, stderr)
		}
		text := must.Read(t, summary)
		checkKeys(t, sections, "summary/1", text)
	}
}

func checkKeys(t *testing.T, sections []string, schema string, text []byte) {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil || v["schema"] != schema {
		t.Errorf("%s: %v, %v", schema, v["schema"], err)
		return
	}
	keys, ok := documented(sections, schema)
	missing := make(map[string]bool)
	if missingKeys(v, keys, missing); !ok || len(missing) > 0 {
		t.Errorf("docs/json*.md: %s lacks %v", schema, slices.Sorted(maps.Keys(missing)))
	}
}

// TestJSONTags finds the schemas and the keys of the sources: each is in a page, also those that no
// command of a test prints.
func TestJSONTags(t *testing.T) {
	text := strings.Join(jsonPages(t), "\n")
	files := []string{"../../ingest/object/bpf/stats.go", "../../store/remote/pull.go"}
	for _, root := range []string{"../../analyze", "."} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch name := filepath.Base(path); {
			case err != nil:
				return err
			case !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			case strings.Contains(path, "analyze/columns/"): // metadata of Parquet
			case strings.Contains(path, "analyze/flame/") && name != "heat.go" &&
				name != "lives.go": // data of pages
			default:
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	schema := regexp.MustCompile(`^"([a-z]+[a-z-]*/1)"$`)
	schemas := 0
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				return !otherJSON[file.Name.Name+"."+n.Name.Name]
			case *ast.BasicLit:
				if m := schema.FindStringSubmatch(n.Value); m != nil {
					schemas++
					if _, ok := documented(jsonPages(t), m[1]); !ok {
						t.Errorf("%s: no page describes %s", path, n.Value)
					}
				}
			case *ast.Field:
				if n.Tag == nil {
					return true
				}
				tag, err := strconv.Unquote(n.Tag.Value)
				key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				if err == nil && key != "" && key != "-" && !strings.Contains(text, "`"+key+"`") &&
					!strings.Contains(text, "`"+key+".*`") {
					t.Errorf("%s: no page describes the key %s", path, key)
				}
			}
			return true
		})
	}
	if schemas < 30 {
		t.Errorf("%d schemas in the sources", schemas)
	}
}

// otherJSON are types that are encoded into bundles and files of a batch.
var otherJSON = map[string]bool{
	"batch.Night": true, "batch.plan": true, "batch.share": true, "batch.packedKeys": true, "bpf.ProgramStats": true,
}
