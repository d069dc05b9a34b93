package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

const (
	// filterRead is how much of standard input is read at a time, in bytes; what a pipe
	// has less of is passed on as it comes.
	filterRead = 256 << 10
	// filterBatch bounds what is looked up together.
	filterBatch = 4 << 20
	// filterLine bounds a line. A longer one is passed on in pieces, cut between words
	// where it has any.
	filterLine = 256 << 10
)

// eachBatch hands the lines of r to body, as many as are there, and waits for more only
// when all that came has been handed over. body may overwrite its argument.
func eachBatch(ctx context.Context, r io.Reader, body func([]byte) error) error {
	pieces, failed := readPieces(ctx, r)
	var text []byte // not yet handed over
	for open := true; open; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case piece, ok := <-pieces:
			open = ok
			text = append(text, piece...)
		}
		for more := open; more && len(text) < filterBatch; {
			select {
			case piece, ok := <-pieces:
				open, more = ok, ok
				text = append(text, piece...)
			default:
				more = false
			}
		}
		end := len(text)
		if open {
			end = wholeLines(text)
		}
		if end > 0 {
			if err := body(text[:end]); err != nil {
				return err
			}
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

// wholeLines returns how much of text can be handed over: the lines that are whole, and
// of one that is too long what ends between words.
func wholeLines(text []byte) int {
	end := bytes.LastIndexByte(text, '\n') + 1
	if len(text)-end <= filterLine {
		return end
	}
	if cut := bytes.LastIndexAny(text[end:], " \t") + 1; cut > 0 {
		return end + cut
	}
	return len(text)
}

// readPieces reads r in the background until its end. An error is sent before pieces
// is closed.
func readPieces(ctx context.Context, r io.Reader) (pieces <-chan []byte, failed <-chan error) {
	out, errs := make(chan []byte, 4), make(chan error, 1)
	go func() {
		defer close(out)
		buf := make([]byte, filterRead)
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
