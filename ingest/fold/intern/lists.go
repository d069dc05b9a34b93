package intern

const (
	listChunkBits = 20 // log2 of the words in a chunk of Lists: 4 MiB
	listChunk     = 1 << listChunkBits
	pageBits      = 12 // log2 of the lists in a page
	pageSize      = 1 << pageBits
)

// MaxList is the length of the longest list.
const MaxList = listChunk

// Lists stores lists of 32-bit numbers contiguously, numbered from 0 in the order of
// addition, without a search for equal ones.
type Lists struct {
	chunks [][]uint32
	fill   int // words used of the last chunk
	refs   [][]listRef
	n      int
	words  int
}

type listRef struct {
	pos uint32 // chunk number and offset
	len uint32
}

// Len returns the number of lists.
func (l *Lists) Len() int { return l.n }

// Words returns the total length of the lists.
func (l *Lists) Words() int { return l.words }

// Add copies a list and returns its number. Lists over 2^20 words are cut there.
func (l *Lists) Add(list []uint32) uint32 {
	list = list[:min(len(list), MaxList)]
	last := len(l.chunks) - 1
	if last < 0 || l.fill+len(list) > len(l.chunks[last]) {
		size := firstChunk / 4
		if last >= 0 {
			size = min(2*len(l.chunks[last]), listChunk)
		}
		for size < len(list) {
			size *= 2
		}
		chunk := make([]uint32, size)
		advise(chunk)
		l.chunks = append(l.chunks, chunk)
		last++
		l.fill = 0
	}
	if l.n>>pageBits == len(l.refs) {
		l.refs = append(l.refs, make([]listRef, pageSize))
	}
	l.refs[l.n>>pageBits][l.n&(pageSize-1)] = listRef{
		uint32(last)<<listChunkBits | uint32(l.fill), uint32(len(list))}
	copy(l.chunks[last][l.fill:], list)
	l.fill += len(list)
	l.words += len(list)
	l.n++
	return uint32(l.n) - 1
}

// At returns a list, which the container owns.
func (l *Lists) At(id uint32) []uint32 {
	r := l.refs[id>>pageBits][id&(pageSize-1)]
	at := r.pos & (listChunk - 1)
	return l.chunks[r.pos>>listChunkBits][at : at+r.len : at+r.len]
}
