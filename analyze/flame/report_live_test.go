package flame_test

import (
	"bytes"
	"testing"

	"symbolize/analyze/flame"
	"symbolize/fixtures/browser"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

// TestReportLive: the tabs of a report show its code and tables; texts in them are texts, links in
// the code lead there and leave the address alone, and a table sorts by its headings.
func TestReportLive(t *testing.T) {
	g := flame.New(profilebuild.EveryKind(), options())
	const hostile = "<img src=x onerror=alert(1)>\u202e"
	g.Code = `<table><tr><td><a href="#f1">one</a></td></tr></table><section id="f1"><h2>one</h2>` +
		`<table class="instructions"><tr id="f1i0"><td class="text">&lt;script&gt;</td></tr>` +
		`<tr><td class="text"><a id="jump" href="#f1i0">jmp 0</a></td></tr></table></section>`
	g.Tables = []flame.Table{{Name: "BPF", Note: "a note", Columns: []flame.TableColumn{
		{Name: "time", Kind: flame.NanosecondsColumn}, {Name: "id", Kind: flame.NumberColumn},
		{Name: "name", Kind: flame.TextColumn}},
		Rows: [][]any{{1500, 7, hostile}, {2500, 3, "b"}}}}
	names := flame.Table{Name: "names", Columns: []flame.TableColumn{{Name: hostile,
		Kind: flame.TextColumn}}}
	for _, n := range profilebuild.HostileNames {
		names.Rows = append(names.Rows, []any{ingest.Printable(n)})
	}
	g.Tables = append(g.Tables, names)
	var html bytes.Buffer
	if err := g.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	b := browser.OpenPage(t, html.Bytes(), ready, false)
	address := browser.Value[string](b, "location.href")
	for _, c := range []struct{ name, script, want string }{
		{name: "the code is there", script: `document.querySelector("#tab-code").click();
			document.querySelector("#panel-code .instructions td").textContent`, want: "<script>"},
		{name: "a link marks its line", script: `document.querySelector("#jump").click();
			document.querySelector("#panel-code .target").id`, want: "f1i0"},
		{name: "the address stays", script: "location.href", want: address},
		{name: "the largest first", script: `document.querySelector("#tab-table-0").click();
			[...document.querySelectorAll("#panel-table-0 tbody tr")].map((r) =>
			[...r.children].map((c) => c.textContent).join("|")).join(";")`,
			want: "2.50µs|3|b;1.50µs|7|" + hostile},
		{name: "by name",
			script: `document.querySelectorAll("#panel-table-0 th button")[2].click();
			document.querySelector("#panel-table-0 tbody td:nth-child(3)").textContent`,
			want: hostile},
		{name: "one tab is open",
			script: `[...document.querySelectorAll("[role=tabpanel]")].filter((p) =>
			!p.hidden).map((p) => p.id).join()`, want: "panel-table-0"},
		{name: "names are texts", script: `document.querySelector("#tab-table-1").click();
			String([...document.querySelectorAll("#panel-table-1 td")].every((c, i) =>
			c.children.length === 0 && c.textContent.slice(0, 70) ===
			symbolizeApp.model.tables[1].rows[i][0].slice(0, 70)))`, want: "true"},
		{name: "no script ran", script: "typeof globalThis.pwned", want: "undefined"},
		{name: "no image",
			script: `String(document.querySelectorAll("img, #panel-code script").length)`,
			want:   "0"},
	} {
		if got := browser.Value[string](b, c.script); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	b.Quiet()
}
