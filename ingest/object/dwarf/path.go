package dwarf

func isAbs(p []byte) bool { return len(p) > 0 && p[0] == '/' }

// AppendPath appends the path of a file to dst: Name, behind Dir unless it is absolute, behind Base
// unless that is, without ".", "..", and empty elements, as far as they can be removed without a
// look at links. Producers write the same file in several ways (./io/../sysdeps/io/fts.c,
// sysdeps/io/fts.c); joined and cleaned they become one. A file without a name gives nothing.
func AppendPath(dst []byte, f File) []byte {
	if len(f.Name) == 0 {
		return dst
	}
	start := len(dst)
	if !isAbs(f.Name) {
		if !isAbs(f.Dir) {
			dst = appendClean(dst, start, f.Base)
		}
		dst = appendClean(dst, start, f.Dir)
	}
	return appendClean(dst, start, f.Name)
}

// appendClean appends the elements of p to the clean path dst[start:].
func appendClean(dst []byte, start int, p []byte) []byte {
	if isAbs(p) && len(dst) == start {
		dst = append(dst, '/')
	}
	for len(p) > 0 {
		n := 0
		for n < len(p) && p[n] != '/' {
			n++
		}
		elem := p[:n]
		p = p[min(n+1, len(p)):]
		switch {
		case n == 0 || string(elem) == ".":
		case string(elem) == "..":
			dst = appendParent(dst, start)
		default:
			if len(dst) > start && dst[len(dst)-1] != '/' {
				dst = append(dst, '/')
			}
			dst = append(dst, elem...)
		}
	}
	return dst
}

// appendParent removes the last element of dst[start:]; above the top of a relative
// path it is kept as "..".
func appendParent(dst []byte, start int) []byte {
	path := dst[start:]
	i := len(path)
	for i > 0 && path[i-1] != '/' {
		i--
	}
	switch last := path[i:]; {
	case len(path) == 1 && path[0] == '/': // "/.." is "/"
		return dst
	case len(last) == 0, string(last) == "..":
		if len(path) > 0 {
			dst = append(dst, '/')
		}
		return append(dst, ".."...)
	case i > 1:
		i-- // the slash before it, unless it is the root's
	}
	return dst[:start+i]
}
