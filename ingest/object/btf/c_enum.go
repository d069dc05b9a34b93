package btf

import "strconv"

// enumerators prints the content of an enumeration. Truncated values have a comment, even if
// comments on layouts are off.
func (p *cPrinter) enumerators(id ID, level int) {
	size, _ := p.t.Size(id)
	table := p.t.enumTable(id)
	wide := false // C uses 8 bytes without an attribute
	var renamed []string
	if p.names != nil {
		renamed = p.names.values[id]
		p.names.once[id] = p.t.Name(id) == ""
	}
	for i := range table.n {
		if p.err != nil {
			return
		}
		e := table.at(i)
		name := p.local(e.Name)
		if renamed != nil {
			name = renamed[i]
		}
		p.line(level + 1)
		p.add(name + " = " + enumValue(e.Value, table.signed) + ",")
		if table.cut {
			p.add(" /* low 32 bits of 64 */")
		}
		if table.signed {
			wide = wide || int64(e.Value) != int64(int32(e.Value))
		} else {
			wide = wide || e.Value>>32 != 0
		}
	}
	p.line(level)
	p.add("}")
	if mode := map[uint64]string{1: "QI", 2: "HI", 8: "DI"}[size]; mode != "" && !wide {
		p.add(" __attribute__((mode(" + mode + ")))")
	}
}

func enumValue(n uint64, signed bool) string {
	switch {
	case signed && int64(n) == -1<<63:
		return "-9223372036854775807LL - 1"
	case signed && int64(n) != int64(int32(n)):
		return strconv.FormatInt(int64(n), 10) + "LL"
	case signed:
		return strconv.FormatInt(int64(n), 10)
	case n>>32 != 0:
		return strconv.FormatUint(n, 10) + "ULL"
	case n>>31 != 0:
		return strconv.FormatUint(n, 10) + "U"
	}
	return strconv.FormatUint(n, 10)
}

// integerOf returns the integer of C that has a size in bytes.
func integerOf(size uint64, signed bool) string {
	word := map[uint64]string{1: "char", 2: "short", 8: "long long"}[size]
	switch {
	case word == "":
		word = "int"
	case signed && size == 1:
		return "signed char"
	}
	if signed {
		return word
	}
	return "unsigned " + word
}
