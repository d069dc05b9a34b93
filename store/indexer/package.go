package indexer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// packageError is the error of a package or library of a form that is not read.
type packageError struct{ reason, hint string }

// Error returns the reason.
func (e *packageError) Error() string { return e.reason }

// Packages and libraries by their first bytes.
const (
	arMagic   = "!<arch>\n" // ar(5)
	thinMagic = "!<thin>\n"
	rpmMagic  = "\xed\xab\xee\xdb" // the lead of an RPM package
	// arHeader is the size of a member's header: name, time, user, group, mode, size, end.
	arHeader  = 60
	arSizeAt  = 48
	arSizeLen = 10
	arEnd     = "`\n"
	// maxMembers bounds the members of a package before its files: deb(5) has two, and others may
	// be between them.
	maxMembers = 16
)

// packageData returns the reader of the tar file with a Debian package's files, data.tar (deb(5)), or
// in itself if it is no package. in is at its start, and has a buffer for a head.
func packageData(in *bufio.Reader) (io.Reader, error) {
	head, _ := in.Peek(len(arMagic) + arHeader)
	switch {
	case bytes.HasPrefix(head, []byte(rpmMagic)):
		return nil, &packageError{"an RPM package, which is not read",
			"unpack it: rpm2cpio FILE | (cd DIR && cpio -idm), then index DIR"}
	case bytes.HasPrefix(head, []byte(thinMagic)), bytes.HasPrefix(head, []byte(arMagic)) &&
		!bytes.HasPrefix(head[len(arMagic):], []byte("debian-binary")):
		return nil, &packageError{"a static library: its code has other addresses in the programs linked with it",
			"index these programs"}
	case !bytes.HasPrefix(head, []byte(arMagic)):
		return in, nil
	}
	if _, err := in.Discard(len(arMagic)); err != nil {
		return nil, err
	}
	for range maxMembers {
		header := make([]byte, arHeader)
		if _, err := io.ReadFull(in, header); err != nil {
			return nil, damagedPackage("no data.tar in it: " + err.Error())
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(header[arSizeAt:arSizeAt+arSizeLen])), 10, 64)
		if err != nil || size < 0 || string(header[arHeader-len(arEnd):]) != arEnd {
			return nil, damagedPackage(fmt.Sprintf("a member with the header %q", header))
		}
		name := strings.TrimRight(string(header[:16]), " /")
		switch {
		case strings.HasSuffix(name, ".lzma"):
			return nil, &packageError{name + " is packed by lzma, which is not read",
				"unpack it: dpkg-deb -x FILE DIR, then index DIR"}
		case strings.HasPrefix(name, "data.tar"):
			return &wholeReader{r: in, left: size}, nil
		}
		if _, err := io.CopyN(io.Discard, in, size+size&1); err != nil {
			return nil, damagedPackage(name + " is cut off")
		}
	}
	return nil, damagedPackage("no data.tar in it")
}

func damagedPackage(reason string) error {
	return &packageError{"Debian package: " + reason, ""}
}

// wholeReader reads a part of a file, which has to be complete.
type wholeReader struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (w *wholeReader) Read(b []byte) (int, error) {
	if w.left == 0 {
		return 0, io.EOF
	}
	n, err := w.r.Read(b[:min(int64(len(b)), w.left)])
	if w.left -= int64(n); w.left > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
