package dwarf

// Unit types of DWARF 5, section 7.5.1.
const (
	utCompile      = 0x01
	utType         = 0x02
	utPartial      = 0x03
	utSkeleton     = 0x04
	utSplitCompile = 0x05
	utSplitType    = 0x06
)

// Tags that the walk distinguishes. DWARF 5, table 7.3.
const (
	tagArrayType         = 0x01
	tagClassType         = 0x02
	tagEnumerationType   = 0x04
	tagLexicalBlock      = 0x0b
	tagCompileUnit       = 0x11
	tagStructureType     = 0x13
	tagSubroutineType    = 0x15
	tagUnionType         = 0x17
	tagInlinedSubroutine = 0x1d
	tagModule            = 0x1e
	tagSubprogram        = 0x2e
	tagVariantPart       = 0x33
	tagInterfaceType     = 0x38
	tagNamespace         = 0x39
	tagPartialUnit       = 0x3c
	tagTypeUnit          = 0x41
	tagCallSite          = 0x48
	tagSkeletonUnit      = 0x4a
	tagGNUParameterPack  = 0x4108
	tagGNUCallSite       = 0x4109
)

// Attributes that the walk reads. DWARF 5, table 7.5, and GNU extensions.
const (
	atSibling          = 0x01
	atName             = 0x03
	atStmtList         = 0x10
	atLowPC            = 0x11
	atHighPC           = 0x12
	atLanguage         = 0x13
	atCompDir          = 0x1b
	atInline           = 0x20
	atAbstractOrigin   = 0x31
	atDeclFile         = 0x3a
	atDeclLine         = 0x3b
	atDeclaration      = 0x3c
	atSpecification    = 0x47
	atExtension        = 0x54
	atRanges           = 0x55
	atCallColumn       = 0x57
	atCallFile         = 0x58
	atCallLine         = 0x59
	atLinkageName      = 0x6e
	atStrOffsetsBase   = 0x72
	atAddrBase         = 0x73
	atRnglistsBase     = 0x74
	atDWOName          = 0x76
	atLoclistsBase     = 0x8c
	atMIPSLinkageName  = 0x2007
	atGNUDWOName       = 0x2130
	atGNUDWOID         = 0x2131
	atGNUDiscriminator = 0x2136
	atGNURangesBase    = 0x2132
	atGNUAddrBase      = 0x2133
)

// Forms. DWARF 5, table 7.6, and GNU extensions.
const (
	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSdata         = 0x0d
	formStrp          = 0x0e
	formUdata         = 0x0f
	formRefAddr       = 0x10
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUdata      = 0x15
	formIndirect      = 0x16
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c
	formGNUAddrIndex  = 0x1f01
	formGNUStrIndex   = 0x1f02
	formGNURefAlt     = 0x1f20
	formGNUStrpAlt    = 0x1f21
)

// Range list entries of DWARF 5, table 7.30.
const (
	rleEndOfList    = 0
	rleBaseAddressx = 1
	rleStartxEndx   = 2
	rleStartxLength = 3
	rleOffsetPair   = 4
	rleBaseAddress  = 5
	rleStartEnd     = 6
	rleStartLength  = 7
)

// Line number opcodes, extended opcodes and content types, tables 7.25 to 7.27.
const (
	lnsCopy             = 1
	lnsAdvancePC        = 2
	lnsAdvanceLine      = 3
	lnsSetFile          = 4
	lnsSetColumn        = 5
	lnsNegateStmt       = 6
	lnsSetBasicBlock    = 7
	lnsConstAddPC       = 8
	lnsFixedAdvancePC   = 9
	lnsSetPrologueEnd   = 10
	lnsSetEpilogueBegin = 11
	lnsSetISA           = 12

	lneEndSequence      = 1
	lneSetAddress       = 2
	lneDefineFile       = 3
	lneSetDiscriminator = 4

	lnctPath           = 1
	lnctDirectoryIndex = 2
)

// Language codes (DW_LANG_) that users of a Unit distinguish. DWARF 5, table 7.17, with the codes
// assigned since.
const (
	LangC89     = 0x01
	LangC       = 0x02
	LangCpp     = 0x04
	LangC99     = 0x0c
	LangObjC    = 0x10
	LangObjCpp  = 0x11
	LangD       = 0x13
	LangGo      = 0x16
	LangHaskell = 0x18
	LangCpp03   = 0x19
	LangCpp11   = 0x1a
	LangRust    = 0x1c
	LangC11     = 0x1d
	LangSwift   = 0x1e
	LangCpp14   = 0x21
	LangCpp17   = 0x2a
	LangCpp20   = 0x2b
	LangC17     = 0x2c
	LangMips    = 0x8001 // assembly
)
