package dwarfvar

// Tags. DWARF 5, table 7.3, and GNU extensions.
const (
	tagArrayType         = 0x01
	tagClassType         = 0x02
	tagEnumerationType   = 0x04
	tagFormalParameter   = 0x05
	tagLexicalBlock      = 0x0b
	tagMember            = 0x0d
	tagPointerType       = 0x0f
	tagReferenceType     = 0x10
	tagCompileUnit       = 0x11
	tagStringType        = 0x12
	tagStructureType     = 0x13
	tagSubroutineType    = 0x15
	tagTypedef           = 0x16
	tagUnionType         = 0x17
	tagUnspecifiedParams = 0x18
	tagVariant           = 0x19
	tagCommonBlock       = 0x1a
	tagInheritance       = 0x1c
	tagInlinedSubroutine = 0x1d
	tagModule            = 0x1e
	tagPtrToMember       = 0x1f
	tagSubrangeType      = 0x21
	tagWithStmt          = 0x22
	tagBaseType          = 0x24
	tagCatchBlock        = 0x25
	tagConstType         = 0x26
	tagEnumerator        = 0x28
	tagPackedType        = 0x2d
	tagSubprogram        = 0x2e
	tagTemplateType      = 0x2f
	tagTemplateValue     = 0x30
	tagTryBlock          = 0x32
	tagVariantPart       = 0x33
	tagVariable          = 0x34
	tagVolatileType      = 0x35
	tagRestrictType      = 0x37
	tagInterfaceType     = 0x38
	tagNamespace         = 0x39
	tagUnspecifiedType   = 0x3b
	tagImportedUnit      = 0x3d
	tagSharedType        = 0x40
	tagRvalueReference   = 0x42
	tagTemplateAlias     = 0x43
	tagCoarrayType       = 0x44
	tagGenericSubrange   = 0x45
	tagAtomicType        = 0x47
	tagCallSite          = 0x48
	tagImmutableType     = 0x4b
	tagGNUParameterPack  = 0x4107 // template
	tagGNUFormalPack     = 0x4108
	tagGNUCallSite       = 0x4109
)

// Attributes. DWARF 5, table 7.5, and GNU extensions.
const (
	atLocation       = 0x02
	atName           = 0x03
	atByteSize       = 0x0b
	atBitOffset      = 0x0c
	atBitSize        = 0x0d
	atLowPC          = 0x11
	atHighPC         = 0x12
	atDiscrValue     = 0x16
	atDiscr          = 0x15
	atImport         = 0x18
	atConstValue     = 0x1c
	atLowerBound     = 0x22
	atUpperBound     = 0x2f
	atAbstractOrigin = 0x31
	atArtificial     = 0x34
	atCount          = 0x37
	atMemberLocation = 0x38
	atDeclaration    = 0x3c
	atEncoding       = 0x3e
	atExternal       = 0x3f
	atDeclFile       = 0x3a
	atDeclLine       = 0x3b
	atFrameBase      = 0x40
	atSpecification  = 0x47
	atType           = 0x49
	atVirtuality     = 0x4c
	atEntryPC        = 0x52
	atExtension      = 0x54
	atRanges         = 0x55
	atCallFile       = 0x58
	atCallLine       = 0x59
	atSignature      = 0x69
	atDataBitOffset  = 0x6b
	atLinkageName    = 0x6e
	atCallReturnPC   = 0x7d
	atCallOrigin     = 0x7f
	atMIPSLinkage    = 0x2007
)

// Encodings of base types. DWARF 5, table 7.11.
const (
	ateAddress      = 0x01
	ateBoolean      = 0x02
	ateComplexFloat = 0x03
	ateFloat        = 0x04
	ateSigned       = 0x05
	ateSignedChar   = 0x06
	ateUnsignedChar = 0x08
	ateImaginary    = 0x09
	ateSignedFixed  = 0x0d
	ateDecimalFloat = 0x0f
)
