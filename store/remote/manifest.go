package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"symbolize/buildid"
	"symbolize/store"
)

const (
	manifestHead = "symbolize manifest 1\n"
	manifestEnd  = "end\n"
)

// maxManifest bounds a manifest with its list of pieces.
const maxManifest = store.MaxManifest + 1<<20

// piece is a part of a source's stream.
type piece struct {
	content string // SHA-256, in hexadecimal
	size    int64
}

// manifest has the facts of one store about an object.
type manifest struct {
	*store.Manifest
	pieces [][]piece // of each source
}

// size returns the bytes of a source's stream.
func (m *manifest) size(source int) (n int64) {
	for _, p := range m.pieces[source] {
		n += p.size
	}
	return n
}

// sumOf returns the name of a content.
func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// manifestKey returns the key of a manifest, as the store encodes it.
func manifestKey(id buildid.ID, encoded []byte) string { return objectDir(id) + sumOf(encoded) }

// encode returns the content of a manifest's object.
func (m *manifest) encode(encoded []byte) []byte {
	var b bytes.Buffer
	for i, list := range m.pieces {
		for _, p := range list {
			fmt.Fprintf(&b, "piece %d %s %d\n", i, p.content, p.size)
		}
	}
	b.WriteString(manifestEnd)
	b.Write(encoded)
	return append(fmt.Appendf(nil, "%ssum %s\n", manifestHead, sumOf(b.Bytes())), b.Bytes()...)
}

// decodeManifest reads the content of the object of a key; the URL is for messages.
func decodeManifest(b []byte, key, url string) (*manifest, error) {
	rest, ok := bytes.CutPrefix(b, []byte(manifestHead))
	if !ok {
		return nil, damagef("%s: it begins with %.40q", url, b)
	}
	line, rest, _ := bytes.Cut(rest, []byte("\n"))
	if string(line) != "sum "+sumOf(rest) {
		return nil, damagef("%s: checksum", url)
	}
	var pieces [][]piece
	for {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			return nil, damagef("%s: no end of the list of pieces", url)
		}
		rest = after
		if string(line)+"\n" == manifestEnd {
			break
		}
		var err error
		if pieces, err = appendPiece(pieces, string(line)); err != nil {
			return nil, damagef("%s: %v", url, err)
		}
	}
	m, err := store.DecodeManifest(url, rest)
	switch {
	case err != nil:
		return nil, damagef("%v", err)
	case key != manifestKey(m.ID, rest):
		return nil, damagef("%s: it is the manifest of %s", url, m.ID)
	case len(pieces) != len(m.Sources):
		return nil, damagef("%s: pieces of %d sources, of which there are %d", url, len(pieces),
			len(m.Sources))
	}
	return &manifest{m, pieces}, nil
}

// appendPiece reads one line of the list of pieces.
func appendPiece(pieces [][]piece, line string) ([][]piece, error) {
	var source int
	var p piece
	_, err := fmt.Sscanf(line, "piece %d %s %d", &source, &p.content, &p.size)
	sum, bad := hex.DecodeString(p.content)
	if err != nil || bad != nil || len(sum) != sha256.Size || p.size <= 0 || p.size > pieceSize ||
		strings.ToLower(p.content) != p.content {
		return nil, fmt.Errorf("line %.40q", line)
	}
	switch at := len(pieces) - 1; {
	case source == at+1 && source < store.MaxSources:
		pieces = append(pieces, []piece{p})
	case source == at && source >= 0:
		pieces[at] = append(pieces[at], p)
	default:
		return nil, fmt.Errorf("piece of source %d after %d", source, at)
	}
	if m := (manifest{pieces: pieces}); m.size(len(pieces)-1) > store.MaxSource+pieceSize {
		return nil, fmt.Errorf("source %d: %w", source, store.ErrTooLarge)
	}
	return pieces, nil
}

// parseKey returns the object and the sum of a manifest's key.
func parseKey(key string) (id buildid.ID, sum string, ok bool) {
	words := strings.Split(strings.TrimPrefix(key, manifestDir), "/")
	if len(words) != 3 || !strings.HasPrefix(key, manifestDir) {
		return id, "", false
	}
	space, digits, _ := strings.Cut(words[1], "-")
	for s := buildid.GNU; s.Valid(); s++ {
		if b, err := hex.DecodeString(digits); s.String() == space && err == nil {
			id = buildid.Make(s, b)
		}
	}
	sum = words[2]
	return id, sum, !id.IsZero() && objectDir(id)+sum == key && len(sum) == 2*sha256.Size
}
