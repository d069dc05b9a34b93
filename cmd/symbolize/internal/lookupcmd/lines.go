// Package lines reads standard input in batches of whole lines, as they come.
package lookupcmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// Reader hands standard input over in batches of whole lines.
type Reader struct {
	Read  int // bytes that are read at a time; less from a pipe is handed over as it comes
	Batch int // bytes above which a batch does not grow
	Line  int // bound of a line, bytes
	// Long returns how much of a line above that bound is handed over all the same. With
	// an error the reading ends, and the text before it is handed over.
	Long func(line []byte) (int, error)
}

// Each hands the lines of r to body, as many as are there, and waits for more only when
// all that came has been handed over. body may overwrite its argument.
func (l *Reader) Each(ctx context.Context, r io.Reader, body func([]byte) error) error {
	pieces, failed := l.pieces(ctx, r)
	var text []byte // not yet handed over
	for open := true; open; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case piece, ok := <-pieces:
			open = ok
			text = append(text, piece...)
		}
		for more := open; more && len(text) < l.Batch; {
			select {
			case piece, ok := <-pieces:
				open, more = ok, ok
				text = append(text, piece...)
			default:
				more = false
			}
		}
		end, tooLong := l.whole(text, open)
		if end > 0 {
			if err := body(text[:end]); err != nil {
				return err
			}
		}
		if tooLong != nil {
			return fmt.Errorf("standard input: %w", tooLong)
		}
		text = append(text[:0], text[end:]...)
	}
	select {
	case err := <-failed:
		return fmt.Errorf("standard input: %w", err)
	default:
		return nil
	}
}

// whole returns how much of text can be handed over: the lines that are whole, and of Long
// gives of one that is too long, and all when no more will come.
func (l *Reader) whole(text []byte, open bool) (end int, err error) {
	end = bytes.LastIndexByte(text, '\n') + 1
	if rest := text[end:]; len(rest) > l.Line {
		n, err := l.Long(rest)
		if err != nil {
			return end, err
		}
		end += n
	}
	if !open {
		end = len(text)
	}
	return end, nil
}

// pieces reads r in the background until its end. An error is sent before pieces is
// closed.
func (l *Reader) pieces(ctx context.Context, r io.Reader) (
	pieces <-chan []byte, failed <-chan error) {
	out, errs := make(chan []byte, 4), make(chan error, 1)
	go func() {
		defer close(out)
		buf := make([]byte, l.Read)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				select {
				case out <- bytes.Clone(buf[:n]):
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				if err != io.EOF {
					errs <- err
				}
				return
			}
		}
	}()
	return out, errs
}
