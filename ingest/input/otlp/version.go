package otlp

import (
	"bytes"
	"errors"

	"symbolize/ingest/protobuf"
)

var errVersion = errors.New("samples are neither in the form of release 1.8 nor of 1.10 of the protocol")

// isFormer reports whether a message's samples are in the form of release 1.8 or 1.9. It looks at
// the first samples of each profile until one is certain:
//
//   - Field 3 is a number in the current version (link) and a list in the former one (attributes);
//     field 4 is a list now (values) and was a number (link). Lists that are not packed look like
//     numbers: then, and without these fields, the next rule decides.
//   - Field 2 has indices of attributes now. They are in the table, their keys differ, and they are
//     no build IDs or types of frames. It had values, as many as there are times.
//
// If both are possible in the first samples, they are in the version of the message before; if there
// is none, in the current one. A file has few versions: fewer samples are looked at if these are
// certainly in the version of the message before.
func (c *contents) isFormer(before *bool) (bool, error) {
	v := versions{c: c, now: true, before: true, left: maxSeenAgain}
	if before != nil {
		if err := v.look(); err == nil && v.now != v.before && v.before == *before {
			return v.before, nil
		}
	}
	v = versions{c: c, now: true, before: true, left: maxSeen}
	if err := v.look(); err != nil {
		return false, err
	}
	if v.now && v.before && before != nil {
		return *before, nil
	}
	return !v.now, nil
}

// look looks at samples. It is an error if they are in no version.
func (v *versions) look() error {
	err := v.c.visitSamples(v.sample)
	switch {
	case err != nil && !errors.Is(err, errCertain):
		return err
	case !v.now && !v.before:
		return errVersion
	}
	return nil
}

// Bounds of the samples that are looked at: of the first message, and of others if they are like
// the one before.
const (
	maxSeen      = 64
	maxSeenAgain = 8
)

// errCertain ends the look for a version.
var errCertain = errors.New("certain")

// visitSamples visits the samples of all profiles.
func (c *contents) visitSamples(visit func(span) error) error {
	for _, r := range c.resources {
		if err := c.below(r, toSamples, visit); err != nil {
			return err
		}
	}
	return nil
}

// toSamples is the path from a ResourceProfiles to its samples.
var toSamples = []uint64{resourceScopes, scopeProfile, profileSample}

// below visits the parts that a path of numbers of fields leads to.
func (c *contents) below(s span, path []uint64, visit func(span) error) error {
	k := c.fields(s)
	for k.Next() {
		var err error
		switch {
		case !k.is(path[0]):
		case len(path) == 1:
			err = visit(k.span())
		default:
			err = c.below(k.span(), path[1:], visit)
		}
		if err != nil {
			return err
		}
	}
	return k.Err
}

// versions collects what is known of a message's version.
type versions struct {
	c           *contents
	now, before bool // possible
	two         []uint64
	left        int // samples to look at
}

// sample looks at a sample.
func (v *versions) sample(s span) error {
	var lists [5]bool
	v.two = v.two[:0]
	count := 0
	k := v.c.fields(s)
	for k.Next() {
		ok := true
		switch {
		case k.Number == 2:
			v.two, ok = protobuf.Numbers(v.two, &k.Field)
		case k.is(sampleTimes):
			count += len(k.Body) / 8
		case k.Number == sampleTimes:
			count++
		}
		if k.Number < 5 {
			lists[k.Number] = lists[k.Number] || k.Wire == protobuf.Bytes
		}
		if !ok {
			return nil // the reader of samples reports it
		}
	}
	switch {
	case k.Err != nil:
		return nil
	case lists[1]: // release 1.7 and older have no table of stacks: refused before
		return errVersion
	case lists[4] && !lists[3]: // values
		v.now, v.before = true, false
		return errCertain
	case lists[3] && !lists[4]: // attributes
		v.now, v.before = false, true
		return errCertain
	}
	if !v.attributes() {
		v.now = false
	}
	if len(v.two) == 0 && count == 0 || len(v.two) > 1 && len(v.two) != count {
		v.before = false
	}
	if v.left--; v.left == 0 {
		return errCertain
	}
	return nil
}

// attributes reports whether field 2 can be attributes of a sample.
func (v *versions) attributes() bool {
	for i, n := range v.two {
		a, err := v.c.attribute(n)
		if n == 0 || err != nil || a.kind == frameTypeKind || a.kind == buildIDKind {
			return false
		}
		key := a.key
		for _, m := range v.two[:i] {
			if other, err := v.c.attribute(m); err == nil && bytes.Equal(other.key, key) {
				return false
			}
		}
	}
	return true
}
