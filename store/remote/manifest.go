package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"symbolize/buildid"
	"symbolize/store"
)

const (
	manifestHead = "symbolize manifest 2\n"
	manifestEnd  = "end\n"
)

// maxManifest bounds a manifest with its list of inputs.
const maxManifest = store.MaxManifest + 1<<20

// manifest has the facts of one store about an object, and the inputs with its sources
// (store.SourceInfo.Input, RawInput) and its blobs.
type manifest struct {
	*store.Manifest
	sizes map[store.Digest]int64 // of all inputs
	blobs map[store.BlobID]store.Digest
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
	for i := range m.Sources {
		s := &m.Sources[i]
		fmt.Fprintf(&b, "source %d %s %d\n", i, store.Digest(s.Input), m.sizes[s.Input])
		if s.RawSize > 0 {
			fmt.Fprintf(&b, "raw %d %s %d\n", i, store.Digest(s.RawInput), m.sizes[s.RawInput])
		}
	}
	for _, id := range m.blobIDs() {
		fmt.Fprintf(&b, "blob %s %s %d\n", id, m.blobs[id], m.sizes[m.blobs[id]])
	}
	b.WriteString(manifestEnd)
	b.Write(encoded)
	return append(fmt.Appendf(nil, "%ssum %s\n", manifestHead, sumOf(b.Bytes())), b.Bytes()...)
}

// blobIDs returns the blobs of the variants, each once.
func (m *manifest) blobIDs() (list []store.BlobID) {
	seen := make(map[store.BlobID]bool)
	for i := range m.Variants {
		for _, id := range m.Variants[i].Blobs() {
			if !seen[id] {
				seen[id] = true
				list = append(list, id)
			}
		}
	}
	return list
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
	end := bytes.Index(rest, []byte(manifestEnd))
	if end < 0 {
		return nil, damagef("%s: no end of the list of inputs", url)
	}
	list, text := string(rest[:end]), rest[end+len(manifestEnd):]
	m := &manifest{sizes: make(map[store.Digest]int64), blobs: make(map[store.BlobID]store.Digest)}
	var err error
	if m.Manifest, err = store.DecodeManifest(url, text); err != nil {
		return nil, damagef("%v", err)
	}
	if key != manifestKey(m.ID, text) {
		return nil, damagef("%s: it is the manifest of %s", url, m.ID)
	}
	for line := range strings.Lines(list) {
		if err := m.parseInput(line); err != nil {
			return nil, damagef("%s: %v", url, err)
		}
	}
	if err := m.complete(url); err != nil {
		return nil, err
	}
	return m, nil
}

// parseInput reads one line of the list of inputs.
func (m *manifest) parseInput(line string) error {
	var word, of, content string
	var size int64
	_, err := fmt.Sscanf(line, "%s %s %s %d\n", &word, &of, &content, &size)
	id, ok := store.ParseDigest(content)
	if err != nil || !ok || size <= 0 || size > store.MaxInput {
		return fmt.Errorf("line %.40q", line)
	}
	m.sizes[id] = size
	if word == "blob" {
		blob, ok := store.ParseDigest(of)
		if m.blobs[store.BlobID(blob)] = id; ok {
			return nil
		}
	}
	i, err := strconv.Atoi(of)
	switch {
	case err != nil || i < 0 || i >= len(m.Sources):
		return fmt.Errorf("line %.40q", line)
	case word == "source":
		m.Sources[i].Input = id
	case word == "raw":
		m.Sources[i].RawInput = id
	default:
		return fmt.Errorf("line %.40q", line)
	}
	return nil
}

// complete refuses a manifest that does not name all inputs.
func (m *manifest) complete(url string) error {
	for i := range m.Sources {
		s := &m.Sources[i]
		if s.Input == (store.Digest{}) || s.RawSize > 0 && s.RawInput == (store.Digest{}) {
			return damagef("%s: no input of source %d", url, i)
		}
	}
	for _, id := range m.blobIDs() {
		if m.blobs[id] == (store.Digest{}) {
			return damagef("%s: no input of blob %s", url, id)
		}
	}
	return nil
}

// check reports sources that this program cannot read; they are left out.
func (m *manifest) check(url string) error {
	for i := range m.Sources {
		if err := m.Sources[i].Check(); err != nil {
			return fmt.Errorf("%s: tables of %s: %w", url, m.ID, err)
		}
	}
	return nil
}

// eachInput calls fn for the inputs of an object, each once.
func (m *manifest) eachInput(fn func(id store.Digest)) {
	seen := make(map[store.Digest]bool)
	once := func(id store.Digest) {
		if !seen[id] {
			seen[id] = true
			fn(id)
		}
	}
	m.Inputs(once)
	for _, id := range m.blobIDs() {
		once(m.blobs[id])
	}
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
