package otlp

import (
	"errors"
	"fmt"

	"symbolize/ingest/protobuf"
)

// Numbers of fields.
const (
	dataResources  = 1
	dataDictionary = 2

	resourceResource = 1 // of ResourceProfiles
	resourceScopes   = 2
	scopeScope       = 1 // of ScopeProfiles
	scopeProfile     = 2

	profileType       = 1
	profileSample     = 2
	profileTime       = 3
	profileDuration   = 4
	profilePeriodType = 5
	profilePeriod     = 6
	profileAttributes = 11

	mappingAttributes = 5

	sampleStack      = 1
	sampleAttributes = 2
	sampleLink       = 3
	sampleValues     = 4
	sampleTimes      = 5

	locationMapping    = 1
	locationAddress    = 2
	locationLine       = 3
	locationAttributes = 4
)

// The tables of a dictionary, by number of field.
const (
	mappingTable = 1 + iota
	locationTable
	functionTable
	linkTable
	stringTable
	attributeTable
	stackTable
	numTables
)

var tableNames = [numTables]string{"", "mapping", "location", "function", "link", "string",
	"attribute", "stack"}

// span is a part of a message: 8 bytes for each entry of a table, of which a message can have one in
// two bytes.
type span struct{ at, n uint32 }

// contents has the parts of one message.
type contents struct {
	data      []byte
	resources []span
	// dictionaries are several if one was cut into pieces, which protobuf permits.
	dictionaries    []span
	dictionaryFirst bool
	tables          [numTables][]span

	attributes  []attribute // that were used
	attributeAt []uint32    // their numbers + 1, by index in the table
}

var (
	errNoTables = errors.New("no dictionary: written for release 1.6 of the protocol or an older one, " +
		"which is not understood, or cut off")
	errNoStacks = errors.New("no table of stacks: written for release 1.7 of the protocol, which is " +
		"not understood, or cut off")
)

// bytes returns the content of a span.
func (c *contents) bytes(s span) []byte { return c.data[s.at : s.at+s.n : s.at+s.n] }

// entry returns an entry of a table.
func (c *contents) entry(table int, i uint64) ([]byte, error) {
	list := c.tables[table]
	if i >= uint64(len(list)) {
		return nil, fmt.Errorf("%s %d of %d", tableNames[table], int64(i), len(list))
	}
	return c.bytes(list[i]), nil
}

// cursor visits the fields of a part of a message.
type cursor struct {
	protobuf.Cursor
	base uint32 // offset of the part
}

// fields returns a cursor before the first field.
func (c *contents) fields(s span) cursor { return cursor{protobuf.Fields(c.bytes(s)), s.at} }

// span returns the place of Body.
func (k *cursor) span() span {
	n := uint32(len(k.Body))
	return span{k.base + uint32(k.At()) - n, n}
}

// is reports whether the current field is a part with a number.
func (k *cursor) is(number uint64) bool { return k.Number == number && k.Wire == protobuf.Bytes }

// split finds the parts of a message and calls visit. Files that were joined end to end look like
// one message with several dictionaries: visit is called for each. With an error visit has got the
// messages before it.
func (c *contents) split(data []byte, visit func() error) error {
	c.data = data
	type part struct {
		body       span
		dictionary bool
	}
	var parts []part
	dictionaries := 0
	k := c.fields(span{0, uint32(len(data))})
	for k.Next() {
		switch {
		case k.is(dataDictionary):
			dictionaries++
			parts = append(parts, part{k.span(), true})
		case k.is(dataResources):
			parts = append(parts, part{k.span(), false})
		}
	}
	err := k.Err
	if err != nil && dictionaries < 2 {
		return err // what was cut off belongs to the only dictionary, or is it
	}
	for len(parts) > 0 {
		n := len(parts)
		if dictionaries > 1 { // the first part tells which end of each message its dictionary is at
			for n = 1; n < len(parts) && !parts[n-1+btoi(parts[0].dictionary)].dictionary; n++ {
			}
		}
		c.resources, c.dictionaryFirst = c.resources[:0], parts[0].dictionary
		var own []span
		for _, p := range parts[:n] {
			if p.dictionary {
				own = append(own, p.body)
			} else {
				c.resources = append(c.resources, p.body)
			}
		}
		parts = parts[n:]
		if loadErr := c.load(own, dictionaries > 1); loadErr != nil {
			return errors.Join(loadErr, err)
		}
		if visitErr := visit(); visitErr != nil {
			return visitErr
		}
	}
	return err
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// load finds the entries of the tables. With whole each dictionary is to be complete.
func (c *contents) load(dictionaries []span, whole bool) error {
	c.dictionaries = dictionaries
	for i := range c.tables {
		c.tables[i] = c.tables[i][:0]
	}
	for _, d := range dictionaries {
		k := c.fields(d)
		for k.Next() {
			if k.Wire == protobuf.Bytes && k.Number >= 1 && k.Number < numTables {
				c.tables[k.Number] = append(c.tables[k.Number], k.span())
			}
		}
		if k.Err != nil {
			return fmt.Errorf("dictionary at %d: %w", d.at, k.Err)
		}
	}
	c.attributes = c.attributes[:0]
	c.attributeAt = emptied(c.attributeAt, len(c.tables[attributeTable]))
	switch {
	case len(c.resources) == 0:
		return nil
	case len(dictionaries) == 0:
		return errNoTables
	case len(c.tables[stackTable]) == 0 && len(c.tables[locationTable]) > 1:
		return errNoStacks
	case whole && (len(c.tables[stringTable]) == 0 || c.tables[stringTable][0].n != 0):
		return errors.New("several dictionaries, which are not tables of several messages")
	}
	return nil
}
