package sampler

import "encoding/binary"

// maxMet bounds the build IDs that are remembered.
const maxMet = 1 << 16

// fileSet are build IDs of files, as frames have them.
type fileSet map[[BuildIDSize]byte]struct{}

// met adds the build IDs of a user's stack, and reports whether one was not met before.
func (x fileSet) met(frames []byte) (isNew bool) {
	var last [BuildIDSize]byte
	for ; len(frames) >= userFrame; frames = frames[userFrame:] {
		id := [BuildIDSize]byte(frames[frameID:])
		if id == last || binary.NativeEndian.Uint32(frames) != statusValid {
			continue
		}
		last = id
		if _, ok := x[id]; !ok && len(x) < maxMet {
			x[id] = struct{}{}
			isNew = true
		}
	}
	return isNew
}

// HasFile reports whether users' stacks have frames with this build ID.
func (p *Part) HasFile(id []byte) bool {
	var padded [BuildIDSize]byte
	if copy(padded[:], id) == 0 {
		return false
	}
	_, ok := p.files[padded]
	return ok
}
