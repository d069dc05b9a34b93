package decode

// Hex reads the hexadecimal digits that b begins with: their value, of the last 16, and number.
func Hex(b []byte) (v uint64, n int) {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return v, n
		}
		v, n = v<<4|uint64(c), n+1
	}
	return v, n
}
