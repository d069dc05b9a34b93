package flame_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"symbolize/fixtures/browser"
	"symbolize/fixtures/profilebuild"
)

// TestLiveDifferential: the page shows both sides, sorts by change, and lists functions that are
// gone.
func TestLiveDifferential(t *testing.T) {
	b := browser.OpenPage(t, differentialPage(t, side(before), side(after), true), ready, false)
	text := func(selector string) string {
		return browser.Value[string](b, `document.querySelector("`+selector+`").textContent`)
	}
	browser.Expect(b, `document.querySelector("#event-label").hidden`, true)
	browser.Expect(b, `symbolizeApp.allText()`, "all: new: cpu-clock, 1.00s")
	x, y := point(b, "graph", "memcpy")
	b.Do(chromedp.MouseEvent(chromedp.MouseMoved, x, y))
	const tip = "total new 500.00ms, 50.00% · base 200.00ms, 20.00% · " +
		"+300.00ms (+150.00%), +30.00 points"
	if got := text("#tooltip"); !strings.Contains(got, tip) {
		t.Errorf("the tooltip is %q", got)
	}
	colour := `(() => { const g = symbolizeApp.graph, names = symbolizeApp.model.frames.name;
		const box = g.boxes.find((b) => names[g.shown.tree.frame[b.node]] === "memcpy");
		return g.colour(box.node, g.shown.tree.frame[box.node]); })()`
	browser.Expect(b, colour, "#d6604d")
	first := `document.querySelector("#panel-top tbody tr td.name").textContent`
	browser.Expect(b, first, "memcpy  prog")
	click := func(selector string) { b.Do(chromedp.Click(chromedp.CSS(selector))) }
	click("#panel-top th:nth-child(1) button") // the greatest loss first
	browser.Expect(b, first, "work  prog")
	click("#panel-top th:nth-child(5) button")
	browser.Expect(b, first, "main  prog")
	browser.Expect(b, `[...document.querySelectorAll("#panel-top td.name em")].map((e) => e.textContent)`+
		`.sort().join()`, "gone ,gone ,new ")
	click("#tab-gone")
	if got := text("#panel-gone"); !strings.Contains(got, "20.00% of it") ||
		!strings.Contains(got, "old 200.00ms; called by main") {
		t.Errorf("the list of what is gone is %q", got)
	}
	if got := text("#legend"); !strings.Contains(got, "change in points: blue shrank, red grew") {
		t.Errorf("the legend is %q", got)
	}
	for _, key := range []string{"c", "c", "c", "r", "s", "t"} {
		b.Do(chromedp.KeyEvent(key))
	}
	browser.Expect(b, `symbolizeApp.state.colour`, "change")
	b.Shot("differential")
	b.Quiet()
}

// TestLiveDifferentialHostile: names reach the table, the list and the tooltip as text.
func TestLiveDifferentialHostile(t *testing.T) {
	base, sides := profilebuild.Hostile(), side(after)
	sides.Events[0] = base.Events[0]
	b := browser.OpenPage(t, differentialPage(t, base, sides, true), ready, true)
	b.Do(chromedp.Click(chromedp.CSS("#tab-gone")))
	browser.Expect(b, `document.querySelector("#panel-gone").textContent.includes(";semi colon 7")`, true)
	browser.Expect(b, `document.querySelector("#panel-top").textContent.includes("<img src=x")`, true)
	browser.Expect(b, `document.querySelectorAll("img, b b").length`, 0)
	browser.Expect(b, `typeof globalThis.pwned`, "undefined")
	b.Quiet()
}
