package annotate

import (
	"cmp"
	"fmt"
	"slices"
)

// arrow is a jump inside a function, drawn in the gutter before the instructions.
type arrow struct {
	Line, Head, Class, Title string
}

// The gutter has lanes for arrows, the shortest nearest to the code.
const (
	laneWidth = 6
	maxLanes  = 16
	headSize  = 4
)

// jump is a jump between rows.
type jump struct {
	from, to int // rows
	title    string
}

func (j *jump) span() (low, high int) { return min(j.from, j.to), max(j.from, j.to) }

// arrows draws the jumps with visible ends, each in the first lane that is free over all of
// its length. Those for which there is none are counted in a note.
func (l *layout) arrows() {
	jumps := l.jumps()
	var lanes [][]jump
	left := 0
	lane := make([]int, len(jumps))
	for i := range jumps {
		n := slices.IndexFunc(lanes, func(taken []jump) bool { return free(taken, &jumps[i]) })
		if n < 0 && len(lanes) == maxLanes {
			lane[i] = -1
			left++
			continue
		}
		if n < 0 {
			n = len(lanes)
			lanes = append(lanes, nil)
		}
		lanes[n] = append(lanes[n], jumps[i])
		lane[i] = n
	}
	l.out.Gutter = len(lanes)*laneWidth + 2*headSize
	for i := range jumps {
		if lane[i] >= 0 {
			l.out.Arrows = append(l.out.Arrows, draw(&jumps[i], lane[i], l.out.Gutter))
		}
	}
	if left > 0 {
		l.out.Notes = append(l.out.Notes, fmt.Sprintf("%d jumps are not drawn: there is no space",
			left))
	}
}

// jumps lists the jumps, shortest first.
func (l *layout) jumps() []jump {
	rows := make(map[int]int) // by offset
	for i := range l.f.Instructions {
		if l.place[i] >= 0 {
			rows[l.f.Instructions[i].Offset] = l.place[i]
		}
	}
	var jumps []jump
	for i := range l.f.Instructions {
		in := &l.f.Instructions[i]
		t := in.Target
		if l.place[i] < 0 || t == nil || t.Kind != "jump" || t.Offset == nil {
			continue
		}
		if to, ok := rows[*t.Offset]; ok {
			jumps = append(jumps, jump{l.place[i], to,
				fmt.Sprintf("%x to %x", in.Offset, *t.Offset)})
		}
	}
	slices.SortStableFunc(jumps, func(a, b jump) int {
		al, ah := a.span()
		bl, bh := b.span()
		return cmp.Or(cmp.Compare(ah-al, bh-bl), cmp.Compare(al, bl))
	})
	return jumps
}

func free(taken []jump, j *jump) bool {
	low, high := j.span()
	return !slices.ContainsFunc(taken, func(t jump) bool {
		l, h := t.span()
		return low <= h && l <= high
	})
}

// draw makes the paths of a jump: out of its row, along its lane, and into the row of its target.
func draw(j *jump, lane, gutter int) arrow {
	middle := func(row int) int { return row*rowHeight + rowHeight/2 }
	x := gutter - 2*headSize - lane*laneWidth
	from, to := middle(j.from)+2, middle(j.to)-2
	a := arrow{Class: "down", Title: j.title}
	if j.to <= j.from {
		a.Class = "up"
	}
	a.Line = fmt.Sprintf("M%d %dH%dV%dH%d", gutter, from, x, to, gutter-headSize)
	a.Head = fmt.Sprintf("M%d %dl%d %dv%dz", gutter, to, -headSize-1, -3, 6)
	return a
}
