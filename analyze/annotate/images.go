package annotate

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Image is an image of a BPF program: the same program on another host or in another kernel has other
// code.
type Image struct {
	Origin  string  `json:"code_from"`
	Samples uint64  `json:"samples"`
	Weight  uint64  `json:"weight"`
	Percent float64 `json:"function_percent"` // of the function's samples
	Shown   bool    `json:"shown,omitempty"`
}

// image is an image with its samples.
type image struct {
	function *HotFunction
	code     *Code // nil if it was not asked for
}

// group are the images of a function of a program, or another function.
type group struct {
	image          // that is printed
	others []image // heaviest first
}

// joinImages joins the functions that are images of one program, and returns all, heaviest first. With
// Options.Image another image than the heaviest is printed.
func joinImages(p *ingest.Profile, list []HotFunction, source CodeSource, opts *Options) []group {
	named := make(map[string]int)
	// A load that was asked for, by RefSymbol, is not joined with others.
	isBPF := func(f *HotFunction) bool {
		o := &p.Objects[f.Object]
		return o.Kind == ingest.JIT && o.RefSymbol == "" && f.Inlined == ""
	}
	for i := range list {
		if isBPF(&list[i]) {
			named[list[i].SystemName]++
		}
	}
	var groups []group
	programs := make(map[string]int) // by Code.Program: the group
	for i := range list {
		x := image{function: &list[i]}
		if isBPF(x.function) && named[x.function.SystemName] > 1 {
			if code, err := source.Code(&p.Objects[x.function.Object], x.function); err == nil {
				x.code = code
			}
		}
		if x.code != nil && x.code.Program != "" {
			if at, ok := programs[x.code.Program]; ok {
				groups[at].others = append(groups[at].others, x)
				continue
			}
			programs[x.code.Program] = len(groups)
		}
		groups = append(groups, group{image: x})
	}
	for i := range groups {
		if g, n := &groups[i], opts.Image-1; n > 0 && n <= len(g.others) {
			g.image, g.others[n-1] = g.others[n-1], g.image
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.value(opts.Count), a.value(opts.Count)) })
	return groups
}

// value is the weight, or with count the number of samples, of all images.
func (g *group) value(count bool) uint64 {
	sum := g.function.Value(count)
	for i := range g.others {
		sum += g.others[i].function.Value(count)
	}
	return sum
}

// join adds the samples of other images to the function's sums.
func (a *annotator) join(others []image) {
	a.others = others
	for i := range others {
		f := others[i].function
		a.samples += f.Samples
		a.weight += f.Weight
		a.total += f.Value(a.opts.Count)
	}
}

// images lists the images, heaviest first; nil if there is only one.
func (a *annotator) images() []Image {
	if len(a.others) == 0 {
		return nil
	}
	one := func(x image) Image {
		return Image{Origin: texts.Printable(x.code.Origin), Samples: x.function.Samples, Weight: x.function.Weight,
			Percent: sharePercent(x.function.Value(a.opts.Count), a.total)}
	}
	list := []Image{one(image{a.f, a.code})}
	list[0].Shown = true
	for _, x := range a.others {
		list = append(list, one(x))
	}
	slices.SortStableFunc(list, func(x, y Image) int { return cmp.Compare(y.Percent, x.Percent) })
	return list
}

// images lists the images of a program; instructions have the samples of one.
func (t *annotateWriter) images(f *Function) {
	for i, x := range f.Images {
		shown := ""
		if x.Shown {
			shown = "; its instructions follow"
		}
		fmt.Fprintf(t, "  image %d: %.2f%%, %s%s\n", i+1, x.Percent, x.Origin, shown)
	}
}

// outside counts the samples after the code of an image.
func (x *image) outside() (n uint64) {
	for _, place := range x.inside(func(HotPlace) {}) {
		n += place.Samples
	}
	return n
}

// inside calls fn for the places in the code of an image, and returns the others.
func (x *image) inside(fn func(HotPlace)) (outside []HotPlace) {
	for i, place := range x.function.Places {
		if place.Offset >= uint64(len(x.code.Bytes)) {
			return x.function.Places[i:] // they are sorted
		}
		fn(place)
	}
	return nil
}

// addLines adds the samples of an image to the lines of source.
func (x *image) addLines(a *annotator) {
	if x.code.Lines == nil {
		return
	}
	var places []HotPlace
	var offsets []int
	x.inside(func(place HotPlace) {
		places = append(places, place)
		offsets = append(offsets, int(place.Offset))
	})
	for i, l := range x.code.Lines(offsets) {
		if l.Line == 0 {
			continue
		}
		n, _ := a.lineOf(&l)
		a.lines[n].Samples += places[i].Samples
		a.lines[n].Weight += places[i].Weight
	}
}

// addRuns adds the samples of an image to the runs of BPF instructions, and returns how many samples
// belong to no run, because its instructions are not known.
func (x *image) addRuns(runs []LayerRun) (without uint64) {
	code, err := x.code.BPF()
	known := err == nil && len(code.Runs) == len(runs)
	x.inside(func(place HotPlace) {
		if !known {
			without += place.Samples
			return
		}
		next := sort.Search(len(code.Runs), func(i int) bool { return uint64(code.Runs[i].Offset) > place.Offset })
		runs[next-1].Samples += place.Samples
		runs[next-1].Weight += place.Weight
	})
	return without
}
