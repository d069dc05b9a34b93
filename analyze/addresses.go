package analyze

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input"
)

// place is a place in an object.
type place struct {
	object ingest.Object
	offset addr.Offset
}

func comparePlaces(a, b place) int {
	return cmp.Or(ingest.CompareObjects(&a.object, &b.object), cmp.Compare(a.offset, b.offset))
}

// nameAddresses replaces tags that are addresses in the kernel's code, such as field:location of
// skb:kfree_skb, by the symbols there: "tcp_v4_rcv+0x91", or the symbol alone at its start. Addresses
// without a symbol remain, with a warning.
func (s *Session) nameAddresses(ctx context.Context, p *ingest.Profile) error {
	isTags := make([]bool, len(p.Strings))
	for i := range p.Samples {
		isTags[p.Samples[i].Tags] = true
	}
	var places []place
	for i, text := range p.Strings {
		if isTags[i] {
			eachPlace(text, func(pl place) { places = append(places, pl) })
		}
	}
	if len(places) == 0 {
		return nil
	}
	named, err := s.namePlaces(ctx, places)
	if err != nil {
		return err
	}
	texts := slices.Clone(p.Strings)
	for i, text := range p.Strings {
		if isTags[i] {
			texts[i] = named.replace(text)
		}
	}
	renumber(p, texts)
	if len(named.failed) > 0 {
		p.Stats.Warnings = append(p.Stats.Warnings, ingest.Warning{
			Text: fmt.Sprintf("%d addresses of the label %s have no symbol: %s: %s", len(named.failed), named.key,
				named.object, named.reason),
			Hint:   "`symbolize index --kernel` on the host that recorded",
			Result: true})
	}
	return nil
}

// eachPlace calls visit for the places in a text of tags.
func eachPlace(text string, visit func(place)) {
	for t := range ingest.DecodeTags(text) {
		if o, offset, ok := t.Place(); ok && t.Key != ingest.AddressTag {
			visit(place{o, offset})
		}
	}
}

// namedPlaces are the symbols of places.
type namedPlaces struct {
	places []place // sorted
	p      *ingest.Profile

	failed map[int]bool // places without a symbol
	key    string       // of the first tag with one
	object string       // of it
	reason ingest.Reason
}

// namePlaces looks up the symbols of places.
func (s *Session) namePlaces(ctx context.Context, places []place) (*namedPlaces, error) {
	slices.SortFunc(places, comparePlaces)
	places = slices.CompactFunc(places, func(a, b place) bool { return comparePlaces(a, b) == 0 })
	p := &ingest.Profile{}
	for i := range places {
		if n := len(p.Objects); n == 0 || ingest.CompareObjects(&p.Objects[n-1], &places[i].object) != 0 {
			p.Objects = append(p.Objects, places[i].object)
		}
		p.Locations = append(p.Locations, ingest.Location{Object: ingest.ObjectID(len(p.Objects) - 1),
			Offset: places[i].offset})
	}
	err := resolve.Resolve(ctx, p, s.view, resolve.Options{Workers: s.opts.Workers, NoInlines: true})
	return &namedPlaces{places: places, p: p, failed: make(map[int]bool)}, err
}

// at returns the symbol of a place, and the distance from its start; "" if there is none.
func (n *namedPlaces) at(i int) (name string, distance uint64) {
	frames := n.p.Names.At(ingest.LocationID(i))
	if len(frames) == 0 {
		return "", 0
	}
	return n.p.Names.Functions[frames[len(frames)-1].Func].SystemName, n.p.Names.SymOff[i]
}

// Symbols returns a function that looks single places up in the store, each once. After an error
// no more places are looked up; err is called last and returns it.
func (s *Session) Symbols(ctx context.Context) (symbol input.SymbolFunc, err func() error) {
	type result struct {
		name     string
		distance uint64
	}
	type key struct {
		object *ingest.Object
		offset addr.Offset
	}
	known := make(map[key]result)
	var failed error
	symbol = func(o *ingest.Object, offset addr.Offset) (string, uint64) {
		k := key{o, offset}
		r, ok := known[k]
		if !ok && failed == nil {
			var n *namedPlaces
			if n, failed = s.namePlaces(ctx, []place{{*o, offset}}); failed == nil {
				r.name, r.distance = n.at(0)
			}
			known[k] = r
		}
		return r.name, r.distance
	}
	return symbol, func() error { return failed }
}

// replace replaces the addresses in a text of tags.
func (n *namedPlaces) replace(text string) string {
	var tags []ingest.Tag
	for t := range ingest.DecodeTags(text) {
		if o, offset, ok := t.Place(); ok && t.Key != ingest.AddressTag {
			t = ingest.Tag{Key: t.Key, Text: t.Text}
			if name := n.symbol(place{o, offset}, t.Key); name != "" {
				t.Text = name
			}
		}
		tags = append(tags, t)
	}
	return ingest.EncodeTags(tags)
}

// symbol returns the symbol of a place in a tag with a key; "" if there is none.
func (n *namedPlaces) symbol(pl place, key string) string {
	i, _ := slices.BinarySearchFunc(n.places, pl, comparePlaces)
	if name, distance := n.at(i); distance != 0 {
		return fmt.Sprintf("%s+%#x", name, distance)
	} else if name != "" {
		return name
	}
	if len(n.failed) == 0 {
		n.key, n.reason, n.object = key, n.p.Names.Reasons[i], ingest.ShortName(&pl.object)
	}
	n.failed[i] = true
	return ""
}

// renumber gives a profile texts in place of its strings, which it sorts, and its samples their
// order again.
func renumber(p *ingest.Profile, texts []string) {
	sorted := slices.Compact(slices.Sorted(slices.Values(texts)))
	number := func(id ingest.StringID) ingest.StringID {
		at, _ := slices.BinarySearch(sorted, texts[id])
		return ingest.StringID(at)
	}
	samples := slices.Clone(p.Samples)
	for i := range samples {
		samples[i].Comm, samples[i].Tags = number(samples[i].Comm), number(samples[i].Tags)
	}
	slices.SortFunc(samples, ingest.CompareSamples)
	p.Strings, p.Samples = sorted, samples
}
