package flame_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"symbolize/analyze/flame"
	"symbolize/fixtures/browser"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/pprof"
)

// ready is there once a page of ours is drawn; the tests need SYMBOLIZE_LIVE=1.
const ready = "html[data-ready]"

// point returns the middle of the frame of a name in a graph, in the window.
func point(b *browser.Tab, graph, name string) (x, y float64) {
	b.T.Helper()
	at := browser.Value[[]float64](b, fmt.Sprintf(`(() => {
		const g = symbolizeApp.%s, names = symbolizeApp.model.frames.name;
		const box = g.boxes.find((b) => !b.thin && names[g.shown.tree.frame[b.node]] === %q);
		const r = g.canvas.getBoundingClientRect();
		return box ? [r.left + box.x + box.w / 2, r.top + g.y(box.row) - g.top + 9] : [];
	})()`, graph, name))
	if len(at) != 2 {
		b.T.Fatalf("no frame %s in sight", name)
	}
	return at[0], at[1]
}

// shop is a profile of a server whose functions, events and comms the tests know.
func shop() *ingest.Profile {
	b := profilebuild.New(profilebuild.Clock(), ingest.Event{Name: "page-faults", Unit: "count"})
	b.Meta = ingest.Meta{Captures: []string{"/srv/<b>shop<i>.data"}, Host: "web1"}
	user := b.Object(ingest.Object{File: ingest.FileRef{Path: "/usr/bin/shop"}})
	kernel := b.Object(ingest.Object{Kind: ingest.Kernel,
		File: ingest.FileRef{Path: "[kernel.kallsyms]"}})
	at := func(o profilebuild.Object, off int, name string) profilebuild.Place {
		p := profilebuild.Place{Object: o, Offset: addr.Offset(off)}
		b.Name(p, 0, profilebuild.Frame{Name: name, File: "/src/shop.c", StartLine: int32(off)})
		return p
	}
	main, serve := at(user, 1, "main"), at(user, 2, "serve")
	sell, pack, copies := at(user, 3, "sell"), at(user, 4, "pack"), at(user, 5, "copy_data")
	read, fault := at(kernel, 6, "vfs_read"), at(kernel, 7, "do_fault")
	add := func(event int, comm string, weight uint64, stack ...profilebuild.Place) {
		b.Row(profilebuild.Row{Event: event, Comm: comm, PID: 7, TID: -1, CPU: -1, Count: 1,
			Weight: weight, Stack: stack})
	}
	add(0, "shop", 400e6, copies, sell, serve, main)
	add(0, "shop", 100e6, sell, serve, main)
	add(0, "packer", 300e6, copies, pack, serve, main)
	add(0, "packer", 200e6, read, pack, serve, main)
	add(1, "shop", 3, fault, copies, sell, serve, main)
	add(1, "packer", 1, fault, pack, serve, main)
	return b.Profile()
}

func TestLivePage(t *testing.T) {
	b := browser.OpenPage(t, page(t, shop(), options()), ready, false)
	browser.Expect(b, `document.title`, "cpu-clock: <b>shop<i>.data")
	browser.Expect(b, `document.querySelector("#title").textContent`, "Flame graph: <b>shop<i>.data")
	browser.Expect(b, `document.documentElement.dataset.theme`, "light")
	browser.Expect(b, `symbolizeApp.graph.boxes.length`, 8)
	browser.Expect(b, `symbolizeApp.allText()`, "all: cpu-clock, 1.00s")
	b.Shot("page")
	t.Run("zoom", func(t *testing.T) { zoomLive(b) })
	t.Run("search", func(t *testing.T) { searchLive(b) })
	t.Run("views", func(t *testing.T) { viewsLive(b) })
	t.Run("choosers", func(t *testing.T) { choosersLive(b) })
	t.Run("panels", func(t *testing.T) { panelsLive(b) })
	b.Quiet()
}

const zoomedName = `symbolizeApp.model.frames.name[` +
	`symbolizeApp.tree.frame[symbolizeApp.state.zoomed]] || "all"`

// zoomLive zooms by a click and by keys, and goes back by keys and by the browser.
func zoomLive(b *browser.Tab) {
	x, y := point(b, "graph", "pack")
	b.Do(chromedp.MouseEvent(chromedp.MouseMoved, x, y))
	browser.Expect(b, `document.querySelector("#tooltip").hidden`, false)
	tip := browser.Value[string](b, `document.querySelector("#tooltip").textContent`)
	for _, want := range []string{"pack", "/usr/bin/shop", "user", "/src/shop.c:4",
		"total 500.00ms, 50.00%", "self 0ns"} {
		if !strings.Contains(tip, want) {
			b.T.Errorf("the tooltip %q lacks %q", tip, want)
		}
	}
	b.Do(chromedp.MouseClickXY(x, y))
	browser.Expect(b, zoomedName, "pack")
	browser.Expect(b, `document.querySelector("#crumbs").textContent`, "all›main›serve›pack")
	browser.Expect(b, `symbolizeApp.graph.boxes.filter((b) => b.w === symbolizeApp.graph.width).length`, 4)
	b.Do(chromedp.KeyEvent(kb.Backspace))
	browser.Expect(b, zoomedName, "all")
	b.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown),
		chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter))
	browser.Expect(b, zoomedName, "pack")
	b.Do(chromedp.NavigateBack())
	browser.Expect(b, zoomedName, "all")
	b.Do(chromedp.NavigateForward())
	browser.Expect(b, zoomedName, "pack")
	b.Do(chromedp.KeyEvent(kb.Escape))
	browser.Expect(b, zoomedName, "all")
}

func searchLive(b *browser.Tab) {
	// The protocol's key types its character although the page took it: Backspace.
	b.Do(chromedp.KeyEvent("/"), chromedp.KeyEvent(kb.Backspace), chromedp.KeyEvent("^copy|read"))
	browser.Expect(b, `document.activeElement.id`, "search")
	browser.Expect(b, `document.activeElement.value`, "^copy|read")
	browser.Expect(b, `document.querySelector("#matched").textContent`, "90.00% matched")
	browser.Expect(b, `document.querySelectorAll("#panel-top tbody tr").length`, 2)
	b.Shot("search")
	b.Do(chromedp.KeyEvent(kb.Escape))
	browser.Expect(b, `document.querySelector("#matched").textContent`, "")
	browser.Expect(b, `document.querySelector("#search").value`, "")
}

const rowOne = `symbolizeApp.graph.rows[1].map((b) =>
	symbolizeApp.model.frames.name[symbolizeApp.tree.frame[b.node]]).join()`

// viewsLive turns the graph over and round, and opens a sandwich.
func viewsLive(b *browser.Tab) {
	browser.Expect(b, rowOne, "main")
	b.Do(chromedp.KeyEvent("r"))
	browser.Expect(b, rowOne, "copy_data,vfs_read,sell")
	b.Do(chromedp.KeyEvent("i"))
	browser.Expect(b, `symbolizeApp.graph.shown.down`, false)
	browser.Expect(b, `symbolizeApp.graph.y(0) > symbolizeApp.graph.y(1)`, true)
	b.Shot("by-leaf")
	b.Do(chromedp.KeyEvent("i"), chromedp.KeyEvent("r"))
	x, y := point(b, "graph", "copy_data")
	b.Do(chromedp.MouseClickXY(x, y, chromedp.ButtonRight))
	browser.Expect(b, `document.querySelector("#sandwich").hidden`, false)
	names := func(graph string, row int) string {
		return fmt.Sprintf(`symbolizeApp.%s.rows[%d].map((b) => symbolizeApp.model.frames.name[`+
			`symbolizeApp.%s.shown.tree.frame[b.node]]).join()`, graph, row, graph)
	}
	browser.Expect(b, names("callers", 0), "copy_data")
	browser.Expect(b, names("callers", 1), "sell,pack")
	browser.Expect(b, `symbolizeApp.two.callers.weights.cum[0]`, 700e6)
	browser.Expect(b, `symbolizeApp.callees.boxes.length`, 1)
	b.Shot("sandwich")
	x, y = point(b, "callers", "sell")
	b.Do(chromedp.MouseClickXY(x, y))
	browser.Expect(b, names("callees", 1), "copy_data")
	b.Do(chromedp.KeyEvent(kb.Escape))
	browser.Expect(b, `document.querySelector("#sandwich").hidden`, true)
	b.Do(chromedp.KeyEvent("c"))
	browser.Expect(b, `document.querySelector("#colour").value`, "object")
	b.Do(chromedp.KeyEvent("c"), chromedp.KeyEvent("t"))
	browser.Expect(b, `document.documentElement.dataset.theme`, "dark")
	browser.Expect(b, `getComputedStyle(document.body).backgroundColor`, "rgb(20, 22, 27)")
	b.Do(chromedp.KeyEvent("t"))
}

func choosersLive(b *browser.Tab) {
	b.Choose("#choosers select", "packer")
	browser.Expect(b, `symbolizeApp.allText()`, "all: cpu-clock, 500.00ms")
	browser.Expect(b, `document.querySelector("#panel-top tbody tr td").textContent`, "60.00%")
	b.Choose("#event", "page-faults")
	browser.Expect(b, `symbolizeApp.allText()`, "all: page-faults, 4")
	browser.Expect(b, `Object.keys(symbolizeApp.state.chosen).length`, 0)
	b.Choose("#event", "cpu-clock")
	browser.Expect(b, `symbolizeApp.allText()`, "all: cpu-clock, 1.00s")
}

// TestLivePageLabels: the page of a pprof file can choose by its labels.
func TestLivePageLabels(t *testing.T) {
	var file bytes.Buffer
	if err := profilebuild.Labelled().Write(&file); err != nil {
		t.Fatal(err)
	}
	opts := options()
	opts.Keep.Tags = ingest.AllLabels
	p, err := pprof.Read("x.pb.gz", file.Bytes(), pprof.ReadOptions{Keep: opts.Keep})
	if err != nil {
		t.Fatal(err)
	}
	b := browser.OpenPage(t, page(t, p, opts), ready, false)
	browser.Expect(b, `symbolizeApp.model.labels.map((l) => l.name).join()`,
		"comm,pid,bytes,endpoint,shard,tenant")
	browser.Expect(b, `symbolizeApp.allText()`, "all: cpu, 300.00ms")
	b.Choose("#choosers label:nth-of-type(4) select", "/buy")
	browser.Expect(b, `symbolizeApp.allText()`, "all: cpu, 66.00ms")
	b.Choose("#choosers label:nth-of-type(1) select", "server")
	browser.Expect(b, `symbolizeApp.allText()`, "all: cpu, 66.00ms")
	b.Choose("#choosers label:nth-of-type(2) select", "pid 102")
	browser.Expect(b, `symbolizeApp.allText()`, "all: cpu, 0ns")
	b.Shot("labels")
	b.Quiet()
}

// panelsLive sorts the table, marks a function, and looks at the other panels.
func panelsLive(b *browser.Tab) {
	first := `document.querySelector("#panel-top tbody tr td.name").title`
	browser.Expect(b, first, "copy_data")
	click := func(selector string) { b.Do(chromedp.Click(chromedp.CSS(selector))) }
	click("#panel-top th:nth-child(2) button")
	browser.Expect(b, first, "main")
	click("#panel-top th:nth-child(3) button")
	browser.Expect(b, first, "copy_data")
	click("#panel-top tbody tr td.name")
	browser.Expect(b, `document.querySelector("#matched").textContent`, "70.00% matched")
	click("#reset")
	click("#tab-missing")
	browser.Expect(b, `document.querySelector("#panel-missing").textContent`,
		"Nothing is missing: 24 frames, all named.")
	click("#tab-about")
	browser.Expect(b, `document.querySelector("#panel-about").textContent.includes("web1")`, true)
	click("#tab-top")
}

// TestLivePageDark: the page is dark where the system is, and white on paper.
func TestLivePageDark(t *testing.T) {
	b := browser.OpenPage(t, page(t, shop(), options()), ready, true)
	browser.Expect(b, `document.documentElement.dataset.theme`, "dark")
	b.Shot("dark")
	b.Media("print", "prefers-color-scheme", "dark")
	browser.Expect(b, `getComputedStyle(document.querySelector(".toolbar")).display`, "none")
	browser.Expect(b, `getComputedStyle(document.body).backgroundColor`, "rgb(255, 255, 255)")
	b.Media("", "prefers-color-scheme", "dark")
	if pdf := b.Print("print"); len(pdf) < 10_000 {
		t.Errorf("PDF of %d bytes", len(pdf))
	}
	browser.Expect(b, `document.documentElement.dataset.theme`, "dark")
	b.Quiet()
}

// TestLivePageHostile: names that try to become markup, script or control reach the page as text.
func TestLivePageHostile(t *testing.T) {
	p := profilebuild.Hostile()
	b := browser.OpenPage(t, page(t, p, options()), ready, false)
	browser.Expect(b, `document.querySelectorAll("script").length`, 11)
	browser.Expect(b, `document.querySelectorAll("img, b b").length`, 0)
	browser.Expect(b, `typeof globalThis.pwned`, "undefined")
	browser.Expect(b, `symbolizeApp.model.frames.name.includes("<script>pwned=1</script>")`, true)
	for _, key := range []string{"r", "c", "s"} {
		b.Do(chromedp.KeyEvent(key))
	}
	b.Shot("hostile")
	b.Quiet()
}

// TestLivePageLarge logs how fast the page of 300,000 stacks of 30 frames is.
func TestLivePageLarge(t *testing.T) {
	browser.NeedLive(t)
	p := profilebuild.Random(1, profilebuild.Size{Objects: 98, Functions: 7510,
		Locations: 111_110, Stacks: 300_000, Depth: 30})
	start := time.Now()
	html := page(t, p, flame.Options{Event: -1, Demangler: options().Demangler})
	made := time.Since(start)
	b := browser.OpenPage(t, html, ready, false)
	frame := browser.Value[float64](b, `symbolizeApp.firstFrame`)
	zoom := browser.Value[float64](b, `(() => {
		const g = symbolizeApp.graph, box = g.boxes[Math.min(40, g.boxes.length - 1)];
		const from = performance.now();
		symbolizeApp.go({ zoomed: box.node });
		return performance.now() - from;
	})()`)
	t.Logf("300,000 stacks of 30 frames: page of %d bytes made in %v, first frame after %.0f ms, "+
		"zoom %.0f ms, %d frames drawn", len(html), made.Round(time.Millisecond), frame, zoom,
		browser.Value[int](b, `symbolizeApp.graph.boxes.length`))
	b.Quiet()
}
