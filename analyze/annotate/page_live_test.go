package annotate

import (
	"testing"

	"github.com/chromedp/chromedp"

	"symbolize/fixtures/browser"
)

// TestLivePage: the page of annotated functions (SYMBOLIZE_LIVE=1) is complete without a script:
// links mark the targets of jumps, what stands beside is drawn, it is dark where the system is and
// white on paper, and names are text.
func TestLivePage(t *testing.T) {
	html := write(t, annotation("loop"+hostile, loop, func(line uint32) (string, int) {
		return hostile, 20
	}))
	for _, dark := range []bool{false, true} {
		b := browser.OpenPage(t, []byte(html), "section", dark)
		background := "rgb(255, 255, 255)"
		browser.Expect(b, `document.querySelectorAll("script, img, link, iframe").length`, 0)
		browser.Expect(b, `document.querySelectorAll("table.instructions").length`, 1)
		browser.Expect(b, `document.querySelectorAll(".instructions tr").length > 8`, true)
		browser.Expect(b, `document.querySelectorAll("svg path, svg polyline").length > 2`, true)
		browser.Expect(b, `document.querySelector("h2").textContent.includes("<script>alert")`, true)
		browser.Expect(b, `(getComputedStyle(document.body).backgroundColor === "`+background+`")`, !dark)
		b.Do(chromedp.Click(chromedp.CSS(`.instructions a[href^="#"]`)))
		browser.Expect(b, `document.querySelectorAll(".instructions tr:target").length`, 1)
		b.Do(chromedp.NavigateBack())
		browser.Expect(b, `document.querySelectorAll(".instructions tr:target").length`, 0)
		b.Shot("annotated")
		b.Media("print", "prefers-color-scheme", "dark")
		browser.Expect(b, `getComputedStyle(document.body).backgroundColor`, background)
		if pdf := b.Print("annotated"); len(pdf) < 5_000 {
			t.Errorf("PDF of %d bytes", len(pdf))
		}
		b.Quiet()
	}
}
