package stackmap

// frameDecoder adds the stacks in values to a Set. A goroutine numbers the frames of a block while
// the caller reads the next values.
type frameDecoder struct {
	layout
	set *Set
	put func(stackID, Part) // receives the stacks in the order of add

	next       *frameBlock
	todo, done chan *frameBlock
	sent       int // blocks sent to todo and not received from done
}

// frameBlock holds the frames of some stacks.
type frameBlock struct {
	frames  []byte
	numbers []uint32 // of the frames in the Set
	stacks  []frameStack
}

// frameStack is a stack in a block.
type frameStack struct {
	id        stackID
	end       int  // of its frames in the block, bytes
	addresses bool // one of its frames is an IP
}

const (
	blockFrames = 256 << 10 // bytes of frames in a block, and of the last of its stacks
	blockStacks = 1 << 12
	maxBlocks   = 2 // that wait for the goroutine or the caller
)

// newFrameDecoder returns a decoder, for which finish must be called. Until then only the decoder
// may use the Set.
func newFrameDecoder(l layout, set *Set, put func(stackID, Part)) *frameDecoder {
	d := &frameDecoder{layout: l, set: set, put: put, next: new(frameBlock),
		todo: make(chan *frameBlock, maxBlocks), done: make(chan *frameBlock, maxBlocks)}
	go d.number()
	return d
}

// add adds the stack in a value.
func (d *frameDecoder) add(id stackID, value []byte) {
	b := d.next
	if !d.set.full() {
		b.frames = append(b.frames, d.frames(value)...)
	}
	b.stacks = append(b.stacks, frameStack{id: id, end: len(b.frames)})
	if len(b.frames) >= blockFrames || len(b.stacks) >= blockStacks {
		d.send()
	}
}

// send passes the block on.
func (d *frameDecoder) send() {
	block := new(frameBlock)
	if d.sent == maxBlocks {
		block = d.receive()
	}
	d.todo <- d.next
	d.sent++
	d.next = block
}

// finish adds the stacks that are left.
func (d *frameDecoder) finish() {
	d.send()
	close(d.todo)
	for d.sent > 0 {
		d.receive()
	}
}

// number numbers the frames of all blocks.
func (d *frameDecoder) number() {
	size := d.frameSize()
	var frames []Frame
	for b := range d.todo {
		at := 0
		for i := range b.stacks {
			s := &b.stacks[i]
			frames = frames[:0]
			for ; at < s.end; at += size {
				frames = append(frames, d.frame(d.set, b.frames[at:at+size]))
			}
			b.numbers = d.set.number(b.numbers, frames)
			s.addresses = hasAddress(frames)
		}
		d.done <- b
	}
}

// receive adds the stacks of the oldest block to the Set, and returns the block without stacks.
func (d *frameDecoder) receive() *frameBlock {
	b := <-d.done
	d.sent--
	size, at := d.frameSize(), 0
	for _, s := range b.stacks {
		part := Part{Cause: NotDumped}
		if !d.set.full() {
			part = d.set.addNumbers(b.numbers[at:s.end/size], s.addresses)
		}
		d.put(s.id, part)
		at = s.end / size
	}
	b.frames, b.numbers, b.stacks = b.frames[:0], b.numbers[:0], b.stacks[:0]
	return b
}
