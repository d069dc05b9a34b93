package mapdump

import (
	"fmt"
	"strings"
	"testing"
)

// TestFormatted visits pairs with their formatted parts, up to invalid JSON.
func TestFormatted(t *testing.T) {
	const one = `{"key":["0x0a"],"value":["0x01","0x02"],"formatted":{"key":10,"value":{"a":513}}}`
	const cpus = `{"key":["0x0a"],"values":[{"cpu":0,"value":["0x01"]},{"cpu":1,"value":["0x02"]}],` +
		`"formatted":{"key":10,"values":[{"cpu":0,"value":1},{"cpu":1,"value":2}]}}`
	for name, test := range map[string]struct {
		text, want string
		whole      bool
	}{
		"one":     {text: "[" + one + "]", want: `0a 10 [01 02] {"a":513};`, whole: true},
		"CPUs":    {text: "[" + cpus + "]", want: "0a 10 [01] 1 [02] 2;", whole: true},
		"without": {text: `[{"key":["0x0a"],"value":["0x01"]}]`, whole: true},
		"cut off": {text: "[" + one, want: `0a 10 [01 02] {"a":513};`},
		"floats": {text: "[" + one + `,{"key":["0x0a"],"formatted":{"key":(unsupported`,
			want: `0a 10 [01 02] {"a":513};`},
		"no bytes":    {text: `[{"key":["a"],"formatted":{"key":1}}]`, want: " 1;", whole: true},
		"no dump":     {text: "{}"},
		"nothing":     {whole: false},
		"other types": {text: `[{"key":5}]`},
	} {
		var got strings.Builder
		visit := func(p *FormattedPair) bool {
			fmt.Fprintf(&got, "%x %s", p.Key, p.FormattedKey)
			for i := range p.Values {
				fmt.Fprintf(&got, " [% x] %s", p.Values[i], p.FormattedValues[i])
			}
			got.WriteString(";")
			return true
		}
		whole := Formatted(strings.NewReader(test.text), int64(len(test.text)), visit)
		if got.String() != test.want || whole != test.whole {
			t.Errorf("%s: %s, %v, want %s", name, &got, whole, test.want)
		}
	}
}
