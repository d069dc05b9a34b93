package files

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// SafeName makes an element of a path of any value, of at most maxLen bytes: two values never give one
// name. Bytes that have a meaning in paths or in terminals are written as %XX. One that is too long is cut:
// it ends in "%~" and a digest of the value; no escaped byte looks like "%~". maxLen is at least 40.
func SafeName(v string, maxLen int) (name string, cut bool) {
	var b strings.Builder
	for i := range len(v) {
		c := v[i]
		if c <= ' ' || c >= 0x7f || c == '/' || c == '\\' || c == '%' || c == '.' && i == 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	if name = b.String(); len(name) <= maxLen {
		return name, false
	}
	sum := sha256.Sum256([]byte(v))
	end := "%~" + hex.EncodeToString(sum[:16])
	return name[:maxLen-len(end)] + end, true
}
