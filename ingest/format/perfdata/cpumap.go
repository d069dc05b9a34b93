package perfdata

import "math/bits"

// Forms of a CPU_MAP record.
const (
	cpuList  = 0 // u16 number, u16 CPUs; 0xffff: any
	cpuMask  = 1 // u16 words, u16 bytes of a word, words
	cpuRange = 2 // u8 any, u8 padding, u16 first, u16 last
	anyCPU   = 1<<16 - 1
)

// CPUMap decodes a CPU_MAP record: the number of CPUs that were recorded. It is 0 if events were
// opened for threads on any CPU.
func (f *File) CPUMap(rec *Record) (n int, err error) {
	r, err := f.body(rec)
	if err != nil {
		return 0, err
	}
	switch form := r.U16(); form {
	case cpuList:
		for range r.U16() {
			if r.U16() == anyCPU {
				return 0, r.Err()
			}
			n++
		}
	case cpuMask:
		words, size := r.U16(), r.U16()
		if size == 8 {
			r.Skip(4)
		}
		for range words {
			if size == 8 {
				n += bits.OnesCount64(r.U64())
			} else {
				n += bits.OnesCount32(r.U32())
			}
		}
	case cpuRange:
		if r.U8() != 0 {
			return 0, r.Err()
		}
		r.Skip(1)
		first := r.U16()
		n = max(0, int(r.U16())-int(first)+1)
	}
	return n, r.Err()
}
