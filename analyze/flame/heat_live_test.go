package flame_test

import (
	"bytes"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"symbolize/analyze/flame"
	"symbolize/fixtures/browser"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

// TestLiveReport: a report has code and times beside the graph; text of the code is text.
func TestLiveReport(t *testing.T) {
	c := flame.NewHeatOffsets()
	for i := range uint64(500) {
		c.Add(100e9+i*7e6, "")
	}
	g := flame.New(shop(), options())
	g.Code, g.Heat = "<pre>main: 1 &lt;b&gt;bold&lt;/b&gt;\n</pre>", c.Grid()
	var html bytes.Buffer
	if err := g.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	b := browser.OpenPage(t, html.Bytes(), ready, false)
	b.Do(chromedp.Click(chromedp.CSS("#tab-code")))
	browser.Expect(b, `document.querySelector("#panel-code").textContent`, "main: 1 <b>bold</b>\n")
	browser.Expect(b, `document.querySelectorAll("#panel-code b").length`, 0)
	b.Do(chromedp.Click(chromedp.CSS("#tab-time")))
	b.Await(`document.querySelector("#panel-time canvas").clientWidth > 300`)
	b.Do(chromedp.Click(chromedp.CSS("#theme")))
	b.Shot("report")
	b.Quiet()
}

// TestLiveHeatMap: a range that is dragged is printed as the option for its samples.
func TestLiveHeatMap(t *testing.T) {
	c := flame.NewHeatOffsets()
	for i := range uint64(500) {
		c.Add(100e9+i*7e6, "")
	}
	var html bytes.Buffer
	if err := flame.NewHeatMap(shop(), "Heat map", 0, c.Grid()).WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	b := browser.OpenPage(t, html.Bytes(), ready, false)
	at := browser.Value[[]float64](b, `(() => {
		const h = symbolizeHeatPage, r = h.canvas.getBoundingClientRect(), s = h.sizes();
		return [r.left + s.left + s.cell * 0.5, r.top + s.high * (h.rows - 0.5),
			r.left + s.left + s.cell * 1.5, r.top + s.high * (h.rows - 24.5)];
	})()`)
	b.Do(chromedp.DragAndDropXY(at[0], at[1], at[2], at[3]))
	browser.Expect(b, `document.querySelector("#range").textContent`,
		"--time 100.000000000,101.499999999")
	browser.Expect(b, `document.querySelector("#range-note").textContent.startsWith("215 samples")`, true)
	b.Do(chromedp.Click(chromedp.CSS("#theme")))
	browser.Expect(b, `document.documentElement.dataset.theme`, "dark")
	b.Shot("heat-map")
	b.Quiet()
}

// TestLiveTimeline: the rows of a timeline have names, whatever they are, and keys choose a range.
func TestLiveTimeline(t *testing.T) {
	c := flame.NewHeatRows()
	for i := range uint64(300) {
		c.Add(50e9+i*10e6, ingest.Printable(profilebuild.HostileNames[int(i)%len(profilebuild.HostileNames)]))
	}
	c.Add(0, "no time")
	var html bytes.Buffer
	if err := flame.NewHeatMap(shop(), "Timeline", 0, c.Grid()).WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	b := browser.OpenPage(t, html.Bytes(), ready, true)
	browser.Expect(b, `document.documentElement.dataset.theme`, "dark")
	browser.Expect(b, `document.querySelector("#status").textContent`,
		"300 samples of cpu-clock; a column is 4.00ms; 1 samples have no time")
	browser.Expect(b, `symbolizeHeatPage.rows`, len(profilebuild.HostileNames))
	b.Do(chromedp.Focus(chromedp.CSS("#heat canvas")), chromedp.KeyEvent(kb.ArrowRight),
		chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(chromedp.ModifierShift)))
	browser.Expect(b, `document.querySelector("#range").textContent`,
		"--time 50.004000000,50.011999999")
	browser.Expect(b, `typeof globalThis.pwned`, "undefined")
	browser.Expect(b, `document.querySelectorAll("img, b b, svg").length`, 0)
	b.Media("print", "prefers-color-scheme", "dark")
	b.Shot("timeline-print")
	b.Quiet()
}
