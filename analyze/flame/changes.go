package flame

import (
	"fmt"
	"math"

	"symbolize/analyze/table"
)

// changeColours are the colours of changes from the greatest loss to the greatest growth: blues and
// reds of ColorBrewer's RdBu, distinguishable for colour-blind people.
// page/compare.js has the same.
var changeColours = [...]string{"#4393c3", "#92c5de", "#d1e5f0", "#e3e5e9", "#fddbc7", "#f4a582",
	"#d6604d"}

// noChange is the number of the colour in the middle.
const noChange = len(changeColours) / 2

// changed returns the class of a node in a differential picture, and its values as a text.
func (p *picture) changed(n *node) (class, values string) {
	s, unit := p.g.Scaling, p.g.Events[newSide].Unit
	cum, base := p.cum[n], p.base[n]
	change := s.change(cum, base)
	return fmt.Sprintf("c%d", noChange+s.step(change)), fmt.Sprintf("%s, base %s, change %s",
		table.Quantity(uint64(math.Round(float64(cum)*s.Scale)), unit),
		table.Quantity(base, unit), s.text(change))
}

// text prints a change: "+1.50 points". A change is never printed as none.
func (s *Scaling) text(change float64) string {
	unit := " points"
	if s.Raw {
		unit = "% of the base"
	}
	number := fmt.Sprintf("%+.2f", change)
	switch {
	case change == 0:
		number = "0"
	case number[1:] == "0.00":
		number = number[:1] + "<0.01"
	}
	return number + unit
}

// changeLegend explains the colours.
func (p *picture) changeLegend(item func(class, text string)) {
	steps := p.g.Scaling.Steps
	for i := range changeColours {
		switch {
		case i < noChange:
			item(fmt.Sprintf("c%d", i), fmt.Sprintf("-%g", steps[noChange-i-1]))
		case i == noChange:
			item(fmt.Sprintf("c%d", i), fmt.Sprintf("within %g", steps[0]))
		default:
			item(fmt.Sprintf("c%d", i), p.g.Scaling.from(steps[i-noChange-1]))
		}
	}
}

// from is a step in the legend: "+5 points".
func (s *Scaling) from(step float64) string {
	if step < s.Steps[len(s.Steps)-1] {
		return fmt.Sprintf("+%g", step)
	}
	if s.Raw {
		return fmt.Sprintf("+%g%% of the base and more", step)
	}
	return fmt.Sprintf("+%g points and more", step)
}

// goneText describes the calls that only the base has, which have no frames in the picture.
func (p *picture) goneText() []string {
	var sum uint64
	p.t.preorder(func(n *node) {
		if p.cum[n] == 0 && n.parent >= 0 && p.cum[&p.t.nodes[n.parent]] > 0 {
			sum += p.base[n]
		}
	})
	if sum == 0 {
		return nil
	}
	e := &p.g.Events[baseSide]
	return []string{"not drawn: " + table.Percent(sum, e.Total) +
		" of the base, in calls that are gone"}
}
