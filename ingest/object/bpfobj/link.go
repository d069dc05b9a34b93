package bpfobj

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"slices"
	"strings"

	"symbolize/ingest/decode"
	"symbolize/ingest/object/bpf"
)

// textSection holds subprograms.
const textSection = ".text"

// link computes the tags of all programs.
func (r *linker) link() {
	var buf []byte
	for _, fn := range r.functions {
		// An object without calls may have programs in .text, for legacy reasons.
		if fn.Program = fn.section.name != textSection || !r.calls; !fn.Program {
			continue
		}
		for _, order := range [...]func(*function) []*function{libbpfOrder, ciliumOrder} {
			list := order(fn)
			if list == nil {
				r.fail("program %s: more than %d instructions with its subprograms", fn.Name,
					maxProgram)
				break
			}
			if buf = r.assemble(buf[:0], list); r.linked > maxLinked {
				r.fail("program %s: more than %d instructions of all programs with their "+
					"subprograms", fn.Name, maxLinked)
				return
			}
			fn.Count = uint32(len(buf) / insnSize)
			for _, g := range list {
				if fn.Uncertain == "" {
					fn.Uncertain = g.Uncertain
				}
			}
			zeroMaps(buf, r.f.BigEndian)
			fn.Tags = fn.addTags(fn.Tags, buf)
			r.ownTags(buf, list)
			if len(list) <= 2 {
				break // there is only one order
			}
		}
	}
}

// addTags adds both tags of the function's instructions to a list.
func (f *Function) addTags(tags []bpf.Tag, insns []byte) []bpf.Tag {
	old, now := sha1.Sum(insns), sha256.Sum256(insns)
	if t := bpf.Tag(old[:8]); !slices.Contains(f.SHA1, t) {
		f.SHA1 = append(f.SHA1, t)
	}
	for _, t := range [...]bpf.Tag{bpf.Tag(old[:8]), bpf.Tag(now[:8])} {
		if !slices.Contains(tags, t) {
			tags = append(tags, t)
		}
	}
	slices.SortFunc(tags, func(a, b bpf.Tag) int { return bytes.Compare(a[:], b[:]) })
	return tags
}

// libbpfOrder returns a function and its callees in the order in which libbpf appends them,
// nil if they are too many.
func libbpfOrder(main *function) []*function {
	list := []*function{main}
	seen := map[*function]bool{main: true}
	size := main.Length
	for stack := [][]ref{main.refs}; len(stack) > 0; { // references not yet looked at
		top := &stack[len(stack)-1]
		if len(*top) == 0 {
			stack = stack[:len(stack)-1]
			continue
		}
		next := (*top)[0].target
		*top = (*top)[1:]
		if seen[next] {
			continue
		}
		if size += next.Length; size > maxProgram*insnSize {
			return nil
		}
		seen[next] = true
		list = append(list, next)
		stack = append(stack, next.refs)
	}
	return list
}

// ciliumOrder is libbpfOrder for cilium/ebpf.
func ciliumOrder(main *function) []*function {
	list := []*function{main}
	seen := map[*function]bool{main: true}
	size := main.Length
	for i := 0; i < len(list); i++ {
		var names []*function
		for _, x := range list[i].refs {
			if !seen[x.target] {
				seen[x.target] = true
				names = append(names, x.target)
			}
		}
		slices.SortFunc(names, func(a, b *function) int { return strings.Compare(a.Name, b.Name) })
		for _, fn := range names {
			if size += fn.Length; size > maxProgram*insnSize {
				return nil
			}
			list = append(list, fn)
		}
	}
	return list
}

// assemble concatenates functions, and links their calls.
func (r *linker) assemble(b []byte, list []*function) []byte {
	starts := make(map[*function]int, len(list))
	for _, fn := range list {
		starts[fn] = len(b) / insnSize
		b = append(b, fn.section.code[fn.start:fn.end]...)
	}
	r.linked += len(b) / insnSize
	order := decode.OrderOf(r.f.BigEndian)
	for _, fn := range list {
		for _, x := range fn.refs {
			at := starts[fn] + int(x.insn)
			imm := uint32(starts[x.target] - at - 1)
			order.PutUint32(b[at*insnSize+4:], imm)
		}
	}
	return b
}

// zeroMaps zeroes the immediates of map references, as bpf_prog_calc_tag does.
func zeroMaps(b []byte, bigEndian bool) {
	inMap := false
	for ; len(b) >= insnSize; b = b[insnSize:] {
		src := b[1] >> 4
		if bigEndian {
			src = b[1] & 0xf
		}
		switch {
		case !inMap && b[0] == opLoadImm64 && (src == srcMapFD || src == srcMapValue):
			inMap = true
			clear(b[4:insnSize])
		case inMap && b[0] == 0 && b[1] == 0 && b[2] == 0 && b[3] == 0:
			inMap = false
			clear(b[4:insnSize])
		default:
			inMap = false
		}
	}
}
