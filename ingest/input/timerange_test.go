package input

import (
	"math"
	"testing"
)

func TestParseTimeRange(t *testing.T) {
	for _, tc := range []struct {
		text string
		want TimeRange
		bad  bool
	}{
		{text: ""},
		{text: "1.5,2", want: TimeRange{From: 1_500_000_000, To: 2_000_000_000, set: true}},
		{text: "1.000000001,", want: TimeRange{From: 1_000_000_001, To: math.MaxUint64, set: true}},
		{text: ",3", want: TimeRange{To: 3_000_000_000, set: true}},
		{text: "10%-20.5%", want: TimeRange{From: 100_000, To: 205_000, Percent: true, set: true}},
		{text: "0%-100%", want: TimeRange{To: 1_000_000, Percent: true, set: true}},
		{text: ",", bad: true}, {text: "2,1", bad: true}, {text: "x,2", bad: true},
		{text: "1", bad: true}, {text: "1-2", bad: true}, {text: "10%-2", bad: true},
		{text: "0%-101%", bad: true}, {text: "%-%", bad: true}, {text: "-1,2", bad: true},
		{text: "1.0000000001,2", bad: true}, {text: "99999999999999999999,", bad: true},
		{text: ".5,1", bad: true}, {text: "1e3,2e3", bad: true},
	} {
		got, err := ParseTimeRange(tc.text)
		if got != tc.want || (err != nil) != tc.bad {
			t.Errorf("%q: %+v, %v", tc.text, got, err)
		}
	}
}
