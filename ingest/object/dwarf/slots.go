package dwarf

// slot numbers the attributes that are read; slotNone marks one that is skipped.
type slot uint8

const (
	slotNone slot = iota
	slotSibling
	slotName
	slotLinkage
	slotLowPC
	slotHighPC
	slotRanges
	slotOrigin
	slotSpec
	slotDeclFile
	slotDeclLine
	slotCallFile
	slotCallLine
	slotCallColumn
	slotDiscriminator
	slotStmtList
	slotCompDir
	slotLanguage
	slotAddrBase
	slotStrBase
	slotRngBase
	slotLocBase
	slotGNURanges
	slotDWOName
	slotDWOID
	numSlots
)

// slotTable has the slots of attributes: most of them in a table, since units have
// hundreds of abbreviations.
type slotTable struct {
	low  [128]slot
	rest func(attr uint16) slot
}

func newSlotTable(of func(uint16) slot) *slotTable {
	t := slotTable{rest: of}
	for i := range t.low {
		t.low[i] = of(uint16(i))
	}
	return &t
}

func (t *slotTable) of(attr uint16) slot {
	if int(attr) < len(t.low) {
		return t.low[attr]
	}
	return t.rest(attr)
}

var (
	siblingSlots  = newSlotTable(siblingSlot)
	functionSlots = newSlotTable(functionSlot)
	scopeSlots    = newSlotTable(scopeSlot)
	unitSlots     = newSlotTable(unitSlot)
)

func siblingSlot(attr uint16) slot {
	if attr == atSibling {
		return slotSibling
	}
	return slotNone
}

func functionSlot(attr uint16) slot {
	switch attr {
	case atSibling:
		return slotSibling
	case atName:
		return slotName
	case atLinkageName, atMIPSLinkageName:
		return slotLinkage
	case atLowPC:
		return slotLowPC
	case atHighPC:
		return slotHighPC
	case atRanges:
		return slotRanges
	case atAbstractOrigin:
		return slotOrigin
	case atSpecification:
		return slotSpec
	case atDeclFile:
		return slotDeclFile
	case atDeclLine:
		return slotDeclLine
	case atCallFile:
		return slotCallFile
	case atCallLine:
		return slotCallLine
	case atCallColumn:
		return slotCallColumn
	case atGNUDiscriminator:
		return slotDiscriminator
	}
	return slotNone
}

// scopeSlot is for the entries around functions.
func scopeSlot(attr uint16) slot {
	switch attr {
	case atName:
		return slotName
	case atDeclLine:
		return slotDeclLine
	case atSpecification, atExtension:
		return slotSpec
	}
	return slotNone
}

func unitSlot(attr uint16) slot {
	switch attr {
	case atName:
		return slotName
	case atLowPC:
		return slotLowPC
	case atHighPC:
		return slotHighPC
	case atRanges:
		return slotRanges
	case atStmtList:
		return slotStmtList
	case atCompDir:
		return slotCompDir
	case atLanguage:
		return slotLanguage
	case atAddrBase, atGNUAddrBase:
		return slotAddrBase
	case atStrOffsetsBase:
		return slotStrBase
	case atRnglistsBase:
		return slotRngBase
	case atLoclistsBase:
		return slotLocBase
	case atGNURangesBase:
		return slotGNURanges
	case atDWOName, atGNUDWOName:
		return slotDWOName
	case atGNUDWOID:
		return slotDWOID
	}
	return slotNone
}
