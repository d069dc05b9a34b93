package container

import (
	"context"
	"errors"
	"fmt"
	"io"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
)

const (
	headerSize = 8
	sizeAt     = 6 // of a record's size in its header
	// maxWindow is the window of zstd's highest level, which perf record -z can be given.
	maxWindow = 128 << 20
	// readSize is how much is unpacked at a time: a block of zstd.
	readSize = 128 << 10
)

// unpack spools the records of all segments, in their order, compressed ones
// unpacked.
func (p *Perf) unpack(ctx context.Context, f *perfdata.File, segments []segment) error {
	out := files.NewSpool(0)
	packed := int64(0)
	for i := range segments {
		packed += segments[i].data.Size
	}
	out.Bound(files.MaxUnpacked(packed, p.most))
	p.closers = append(p.closers, out)
	var all joined
	var warnings []error
	for i := range segments {
		s := &segments[i]
		start := out.Size()
		u := unpacker{ctx: ctx, in: s.file(f).AllRecords(), big: f.BigEndian,
			out: files.NewQueue(out), name: s.name + " unpacked"}
		if err := u.run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		warnings = append(warnings, u.warnings...)
		all.add(segment{name: u.name, data: perfdata.Section{Size: out.Size() - start}})
	}
	p.File = f.WithRecords(out, perfdata.Section{Size: out.Size()}, all.place)
	p.File.Parts = all.sections()
	p.File.Warn(warnings...)
	return nil
}

// unpacker copies records into a spool, and unpacks compressed ones. Their payloads are one zstd
// stream, cut anywhere, also within a record. Records
// between them go in between, after the records unpacked before. The stream has no end.
type unpacker struct {
	ctx  context.Context
	name string // of the unpacked file, for messages
	in   *perfdata.RecordReader
	big  bool
	out  *files.Queue

	payload  []byte // of the current COMPRESSED record: the part that the decoder has not read
	at       int64  // of that record
	block    []byte // whole records to be written
	rest     []byte // the beginning of a record that is not unpacked completely
	unpacked int64  // bytes, for messages
	warnings []error
	err      error // of the spool or the context, which ends all
}

// run copies all records. Damage becomes a warning; an error is of the spool or the context.
func (u *unpacker) run() error {
	if damage := u.unpackAll(); damage != nil {
		u.warnings = append(u.warnings, notTheRest(damage))
		for u.next() { // other records can still be read
			u.payload = nil
		}
	}
	if err := u.in.Err(); err != nil && u.err == nil {
		u.warnings = append(u.warnings, notTheRest(err))
	}
	u.flush(0)
	u.keep(u.out.Close())
	return u.err
}

// unpackAll unpacks the stream to its end or to damage.
func (u *unpacker) unpackAll() (damage error) {
	dec := files.ZstdReader(u, maxWindow)
	defer dec.Close()
	buf := make([]byte, readSize)
	for {
		n, err := dec.Read(buf)
		if damage := u.split(buf[:n]); damage != nil {
			return damage
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), u.err != nil:
			return u.unfinished()
		default:
			return &decode.Error{Name: u.name, Offset: u.at, Reason: "COMPRESSED record: " + err.Error()}
		}
	}
}

// unfinished reports a record that the stream ends in.
func (u *unpacker) unfinished() error {
	if len(u.rest) == 0 || u.err != nil {
		return nil
	}
	return &decode.Error{Name: u.name, Offset: u.unpacked - int64(len(u.rest)),
		Reason: fmt.Sprintf("%d bytes of a record that has no end", len(u.rest))}
}

// Read implements io.Reader for the decoder: the payloads of all COMPRESSED records. The
// decoder reads more when all unpacked bytes are used.
func (u *unpacker) Read(b []byte) (int, error) {
	for len(u.payload) == 0 {
		if !u.next() {
			return 0, io.EOF
		}
	}
	n := copy(b, u.payload)
	u.payload = u.payload[n:]
	return n, nil
}

// next continues to the next record. A compressed one becomes the payload; another is copied.
func (u *unpacker) next() bool {
	if u.err == nil {
		u.err = u.ctx.Err()
	}
	if u.err != nil || !u.in.Next() {
		return false
	}
	rec := u.in.Record()
	if rec.Type.Compressed() {
		u.payload, u.at = payload(rec, u.big), rec.Offset
		return true
	}
	if u.in.Err() != nil {
		return false // the bytes after the record are not all there
	}
	u.block = append(rec.AppendHeader(u.block, u.big), rec.Body...)
	if behind := u.in.Offset() - rec.Offset - int64(rec.Size); behind > 0 {
		u.flush(behind) // a trace, which nobody reads
	}
	return true
}

// payload returns the compressed bytes of a record. COMPRESSED2 has their number before them,
// and padding behind.
func payload(rec *perfdata.Record, big bool) []byte {
	if rec.Type != perfdata.TypeCompressed2 {
		return rec.Body
	}
	d := decode.New("", rec.Body, 0, big)
	n := d.U64()
	return rec.Body[min(8, len(rec.Body)):][:min(n, uint64(d.Left()))]
}

// split copies the whole records among unpacked bytes, up to damage.
func (u *unpacker) split(b []byte) (damage error) {
	u.unpacked += int64(len(b))
	if len(u.rest) > 0 {
		u.rest = append(u.rest, b...)
		b = u.rest
	}
	whole := 0
	for len(b)-whole >= headerSize && damage == nil {
		t, size := recordHeader(b[whole:], u.big)
		if size < headerSize || t.Compressed() { // which are not compressed once more
			damage = &decode.Error{Name: u.name, Offset: u.unpacked - int64(len(b)-whole),
				Reason: fmt.Sprintf("record of type %s and %d bytes in a COMPRESSED record", t, size)}
			break
		}
		if len(b)-whole < size {
			break
		}
		whole += size
	}
	u.block = append(u.block, b[:whole]...)
	u.rest = append(u.rest[:0], b[whole:]...)
	if len(u.block) >= files.QueueBlock {
		u.flush(0)
	}
	return damage
}

// recordHeader returns the type and size of the record that begins b.
func recordHeader(b []byte, big bool) (t perfdata.Type, size int) {
	return perfdata.Type(decode.U32(b, big)), int(decode.U16(b[sizeAt:], big))
}

// flush writes the whole records, and zeros in place of the trace after them, to the spool.
func (u *unpacker) flush(trace int64) {
	if len(u.block)+int(trace) > 0 {
		u.keep(u.out.Send(u.block, trace))
		u.block = u.out.Buffer()
	}
}

func (u *unpacker) keep(err error) {
	if u.err == nil {
		u.err = err
	}
}
