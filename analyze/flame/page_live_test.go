package flame_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"symbolize/analyze/flame"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// tab is a page in a headless browser whose every name of a host is unknown.
type tab struct {
	t    *testing.T
	ctx  context.Context
	mu   sync.Mutex
	said []string // on the console
	asks []string // addresses that were requested
}

// openTab shows a page from a file.
func openTab(t *testing.T, html []byte, dark bool) *tab {
	t.Helper()
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: needs SYMBOLIZE_LIVE=1 (make live)")
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: needs chromium (Debian: chromium)")
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, html, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(
		chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.NoSandbox,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"), chromedp.WindowSize(1400, 860))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	// The first use starts the browser, which would end with a timeout of its own.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	b.listen()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate("file://"+path), chromedp.WaitVisible(chromedp.CSS("html[data-ready]")))
	return b
}

func (b *tab) listen() {
	b.t.Helper()
	requests := chromedp.Events(b.ctx, network.RequestWillBeSent)
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		b.t.Fatal(err)
	}
	console := chromedp.Console(b.ctx)
	go func() {
		for m, err := range console {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.said = append(b.said, string(m.Type)+": "+m.Text)
			b.mu.Unlock()
		}
	}()
	go func() {
		for m, err := range requests {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.asks = append(b.asks, m.Request.URL)
			b.mu.Unlock()
		}
	}()
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// value evaluates an expression in the page.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// expect compares the value of an expression.
func expect[T comparable](b *tab, expression string, want T) {
	b.t.Helper()
	if got := value[T](b, expression); got != want {
		b.t.Errorf("%s is %v, want %v", expression, got, want)
	}
}

// point returns the middle of the frame of a name in a graph, in the window.
func (b *tab) point(graph, name string) (x, y float64) {
	b.t.Helper()
	at := value[[]float64](b, fmt.Sprintf(`(() => {
		const g = symbolizeApp.%s, names = symbolizeApp.model.frames.name;
		const box = g.boxes.find((b) => !b.thin && names[g.shown.tree.frame[b.node]] === %q);
		const r = g.canvas.getBoundingClientRect();
		return box ? [r.left + box.x + box.w / 2, r.top + g.y(box.row) - g.top + 9] : [];
	})()`, graph, name))
	if len(at) != 2 {
		b.t.Fatalf("no frame %s in sight", name)
	}
	return at[0], at[1]
}

// shot keeps a picture, for go test -artifacts.
func (b *tab) shot(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// quiet fails the test if the page wrote to the console or asked for anything but itself.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.said) > 0 {
		b.t.Errorf("the console has %q", b.said)
	}
	for _, a := range b.asks {
		if !strings.HasPrefix(a, "file://") || !strings.HasSuffix(a, "/page.html") {
			b.t.Errorf("the page asked for %s", a)
		}
	}
	if len(b.asks) == 0 {
		b.t.Error("no request was seen: the test looks at nothing")
	}
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
	b := openTab(t, page(t, shop(), options()), false)
	expect(b, `document.title`, "cpu-clock: <b>shop<i>.data")
	expect(b, `document.querySelector("#title").textContent`, "Flame graph: <b>shop<i>.data")
	expect(b, `document.documentElement.dataset.theme`, "light")
	expect(b, `symbolizeApp.graph.boxes.length`, 8)
	expect(b, `symbolizeApp.allText()`, "all: cpu-clock, 1.00s")
	b.shot("page")
	t.Run("zoom", func(t *testing.T) { zoomLive(b) })
	t.Run("search", func(t *testing.T) { searchLive(b) })
	t.Run("views", func(t *testing.T) { viewsLive(b) })
	t.Run("choosers", func(t *testing.T) { choosersLive(b) })
	t.Run("panels", func(t *testing.T) { panelsLive(b) })
	b.quiet()
}

const zoomedName = `symbolizeApp.model.frames.name[` +
	`symbolizeApp.tree.frame[symbolizeApp.state.zoomed]] || "all"`

// zoomLive zooms by a click and by keys, and goes back by keys and by the browser.
func zoomLive(b *tab) {
	x, y := b.point("graph", "pack")
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, x, y))
	expect(b, `document.querySelector("#tooltip").hidden`, false)
	tip := value[string](b, `document.querySelector("#tooltip").textContent`)
	for _, want := range []string{"pack", "/usr/bin/shop", "user", "/src/shop.c:4",
		"total 500.00ms, 50.00%", "self 0ns"} {
		if !strings.Contains(tip, want) {
			b.t.Errorf("the tooltip %q lacks %q", tip, want)
		}
	}
	b.do(chromedp.MouseClickXY(x, y))
	expect(b, zoomedName, "pack")
	expect(b, `document.querySelector("#crumbs").textContent`, "all›main›serve›pack")
	expect(b, `symbolizeApp.graph.boxes.filter((b) => b.w === symbolizeApp.graph.width).length`, 4)
	b.do(chromedp.KeyEvent(kb.Backspace), chromedp.Sleep(200*time.Millisecond))
	expect(b, zoomedName, "all")
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown),
		chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter))
	expect(b, zoomedName, "pack")
	b.do(chromedp.NavigateBack(), chromedp.Sleep(200*time.Millisecond))
	expect(b, zoomedName, "all")
	b.do(chromedp.NavigateForward(), chromedp.Sleep(200*time.Millisecond))
	expect(b, zoomedName, "pack")
	b.do(chromedp.KeyEvent(kb.Escape))
	expect(b, zoomedName, "all")
}

func searchLive(b *tab) {
	// The protocol's key types its character although the page took it: Backspace.
	b.do(chromedp.KeyEvent("/"), chromedp.KeyEvent(kb.Backspace), chromedp.KeyEvent("^copy|read"),
		chromedp.Sleep(400*time.Millisecond))
	expect(b, `document.activeElement.id`, "search")
	expect(b, `document.activeElement.value`, "^copy|read")
	expect(b, `document.querySelector("#matched").textContent`, "90.00% matched")
	expect(b, `document.querySelectorAll("#panel-top tbody tr").length`, 2)
	b.shot("search")
	b.do(chromedp.KeyEvent(kb.Escape))
	expect(b, `document.querySelector("#matched").textContent`, "")
	expect(b, `document.querySelector("#search").value`, "")
}

const rowOne = `symbolizeApp.graph.rows[1].map((b) =>
	symbolizeApp.model.frames.name[symbolizeApp.tree.frame[b.node]]).join()`

// viewsLive turns the graph over and round, and opens a sandwich.
func viewsLive(b *tab) {
	expect(b, rowOne, "main")
	b.do(chromedp.KeyEvent("r"))
	expect(b, rowOne, "copy_data,vfs_read,sell")
	b.do(chromedp.KeyEvent("i"))
	expect(b, `symbolizeApp.graph.shown.down`, false)
	expect(b, `symbolizeApp.graph.y(0) > symbolizeApp.graph.y(1)`, true)
	b.shot("by-leaf")
	b.do(chromedp.KeyEvent("i"), chromedp.KeyEvent("r"))
	x, y := b.point("graph", "copy_data")
	b.do(chromedp.MouseClickXY(x, y, chromedp.ButtonRight))
	expect(b, `document.querySelector("#sandwich").hidden`, false)
	names := func(graph string, row int) string {
		return fmt.Sprintf(`symbolizeApp.%s.rows[%d].map((b) => symbolizeApp.model.frames.name[`+
			`symbolizeApp.%s.shown.tree.frame[b.node]]).join()`, graph, row, graph)
	}
	expect(b, names("callers", 0), "copy_data")
	expect(b, names("callers", 1), "sell,pack")
	expect(b, `symbolizeApp.two.callers.weights.cum[0]`, 700e6)
	expect(b, `symbolizeApp.callees.boxes.length`, 1)
	b.shot("sandwich")
	x, y = b.point("callers", "sell")
	b.do(chromedp.MouseClickXY(x, y))
	expect(b, names("callees", 1), "copy_data")
	b.do(chromedp.KeyEvent(kb.Escape))
	expect(b, `document.querySelector("#sandwich").hidden`, true)
	b.do(chromedp.KeyEvent("c"))
	expect(b, `document.querySelector("#colour").value`, "object")
	b.do(chromedp.KeyEvent("c"), chromedp.KeyEvent("t"))
	expect(b, `document.documentElement.dataset.theme`, "dark")
	expect(b, `getComputedStyle(document.body).backgroundColor`, "rgb(20, 22, 27)")
	b.do(chromedp.KeyEvent("t"))
}

// choose sets a field as a user does.
func (b *tab) choose(selector, text string) {
	b.t.Helper()
	expect(b, fmt.Sprintf(`(() => {
		const s = document.querySelector(%q), o = [...s.options].find((o) => o.text === %q);
		s.value = o.value;
		return s.dispatchEvent(new Event("change"));
	})()`, selector, text), true)
}

func choosersLive(b *tab) {
	b.choose("#choosers select", "packer")
	expect(b, `symbolizeApp.allText()`, "all: cpu-clock, 500.00ms")
	expect(b, `document.querySelector("#panel-top tbody tr td").textContent`, "60.00%")
	b.choose("#event", "page-faults")
	expect(b, `symbolizeApp.allText()`, "all: page-faults, 4")
	expect(b, `Object.keys(symbolizeApp.state.chosen).length`, 0)
	b.choose("#event", "cpu-clock")
	expect(b, `symbolizeApp.allText()`, "all: cpu-clock, 1.00s")
}

// panelsLive sorts the table, marks a function, and looks at the other panels.
func panelsLive(b *tab) {
	first := `document.querySelector("#panel-top tbody tr td.name").title`
	expect(b, first, "copy_data")
	click := func(selector string) { b.do(chromedp.Click(chromedp.CSS(selector))) }
	click("#panel-top th:nth-child(2) button")
	expect(b, first, "main")
	click("#panel-top th:nth-child(3) button")
	expect(b, first, "copy_data")
	click("#panel-top tbody tr td.name")
	expect(b, `document.querySelector("#matched").textContent`, "70.00% matched")
	click("#reset")
	click("#tab-missing")
	expect(b, `document.querySelector("#panel-missing").textContent`,
		"Nothing is missing: 24 frames, all named.")
	click("#tab-about")
	expect(b, `document.querySelector("#panel-about").textContent.includes("web1")`, true)
	click("#tab-top")
}

// TestLivePageDark: the page is dark where the system is, and white on paper.
func TestLivePageDark(t *testing.T) {
	b := openTab(t, page(t, shop(), options()), true)
	expect(b, `document.documentElement.dataset.theme`, "dark")
	b.shot("dark")
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
	if err != nil || len(pdf) < 10_000 {
		t.Errorf("PDF of %d bytes: %v", len(pdf), err)
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "print.pdf"), pdf, 0o644); err != nil {
		t.Error(err)
	}
	expect(b, `document.documentElement.dataset.theme`, "dark")
	b.quiet()
}

// TestLivePageHostile: names that try to become markup, script or control reach the page as text.
func TestLivePageHostile(t *testing.T) {
	p := hostile()
	b := openTab(t, page(t, p, options()), false)
	expect(b, `document.querySelectorAll("script").length`, 11)
	expect(b, `document.querySelectorAll("img, b b").length`, 0)
	expect(b, `typeof globalThis.pwned`, "undefined")
	expect(b, `symbolizeApp.model.frames.name.includes("<script>pwned=1</script>")`, true)
	for _, key := range []string{"r", "c", "s"} {
		b.do(chromedp.KeyEvent(key))
	}
	b.shot("hostile")
	b.quiet()
}

// TestLivePageLarge logs how fast the page of 300,000 stacks of 30 frames is.
func TestLivePageLarge(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: needs SYMBOLIZE_LIVE=1 (make live)")
	}
	p := profilebuild.Random(1, profilebuild.Size{Objects: 98, Functions: 7510,
		Locations: 111_110, Stacks: 300_000, Depth: 30})
	start := time.Now()
	html := page(t, p, flame.Options{Event: -1, Name: options().Name})
	made := time.Since(start)
	b := openTab(t, html, false)
	frame := value[float64](b, `symbolizeApp.firstFrame`)
	zoom := value[float64](b, `(() => {
		const g = symbolizeApp.graph, box = g.boxes[Math.min(40, g.boxes.length - 1)];
		const from = performance.now();
		symbolizeApp.go({ zoomed: box.node });
		return performance.now() - from;
	})()`)
	t.Logf("300,000 stacks of 30 frames: page of %d bytes made in %v, first frame after %.0f ms, "+
		"zoom %.0f ms, %d frames drawn", len(html), made.Round(time.Millisecond), frame, zoom,
		value[int](b, `symbolizeApp.graph.boxes.length`))
	b.quiet()
}
