package sampler

import (
	"testing"
)

const switchFormat = `name: sched_switch
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char next_comm[16];	offset:40;	size:16;	signed:0;
	field:pid_t next_pid;	offset:56;	size:4;	signed:1;
`

func TestSwitchFormat(t *testing.T) {
	l, err := parseSwitchFormat("format", switchFormat)
	if err != nil || l != (switchLayout{nextPID: 56, prevState: 32}) {
		t.Errorf("layout %+v, %v", l, err)
	}
	whole := len(switchFormat) - 1 // without the last newline it is whole as well
	for n := range whole - len(" size:4;	signed:1;") {
		if l, err := parseSwitchFormat("format", switchFormat[:n]); err == nil {
			t.Fatalf("the first %d bytes have the layout %+v", n, l)
		}
	}
}
