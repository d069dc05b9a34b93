package flame_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"symbolize/analyze/flame"
	"symbolize/analyze/heat"
)

// TestLiveReport: a report has code and times beside the graph; text of the code is text.
func TestLiveReport(t *testing.T) {
	c := heat.NewOffsets()
	for i := range uint64(500) {
		c.Add(100e9+i*7e6, "")
	}
	g := flame.New(shop(), options())
	g.Code, g.Heat = "<pre>main: 1 &lt;b&gt;bold&lt;/b&gt;\n</pre>", c.Grid()
	var html bytes.Buffer
	if err := g.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, html.Bytes(), false)
	b.do(chromedp.Click(chromedp.CSS("#tab-code")))
	expect(b, `document.querySelector("#panel-code").textContent`, "main: 1 <b>bold</b>\n")
	expect(b, `document.querySelectorAll("#panel-code b").length`, 0)
	b.do(chromedp.Click(chromedp.CSS("#tab-time")))
	b.await(`document.querySelector("#panel-time canvas").clientWidth > 300`)
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	b.shot("report")
	b.quiet()
}

// await waits until an expression is true: the browser reports new sizes after it has drawn.
func (b *tab) await(expression string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); !value[bool](b, expression); {
		if time.Now().After(end) {
			b.t.Fatalf("%s does not become true", expression)
		}
		b.do(chromedp.Sleep(20 * time.Millisecond))
	}
}

// TestLiveHeatMap: a range that is dragged is printed as the option for its samples.
func TestLiveHeatMap(t *testing.T) {
	c := heat.NewOffsets()
	for i := range uint64(500) {
		c.Add(100e9+i*7e6, "")
	}
	var html bytes.Buffer
	if err := flame.NewHeatMap(shop(), "Heat map", 0, c.Grid()).WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, html.Bytes(), false)
	at := value[[]float64](b, `(() => {
		const h = symbolizeHeatPage, r = h.canvas.getBoundingClientRect(), s = h.sizes();
		return [r.left + s.left + s.cell * 0.5, r.top + s.high * (h.rows - 0.5),
			r.left + s.left + s.cell * 1.5, r.top + s.high * (h.rows - 24.5)];
	})()`)
	b.do(chromedp.DragAndDropXY(at[0], at[1], at[2], at[3]))
	expect(b, `document.querySelector("#range").textContent`,
		"--time 100.000000000,101.499999999")
	expect(b, `document.querySelector("#range-note").textContent.startsWith("215 samples")`, true)
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	expect(b, `document.documentElement.dataset.theme`, "dark")
	b.shot("heat-map")
	b.quiet()
}
