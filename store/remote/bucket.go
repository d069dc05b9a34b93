package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"symbolize/buildid"
	"symbolize/store"
)

// Bucket holds objects by key: words with slashes between them, of letters, digits and "-". Its
// methods may be called from several goroutines. Their errors name the URL of the object.
type Bucket interface {
	// Get returns an object of at most limit bytes. The error wraps ErrNotFound if there is none.
	Get(ctx context.Context, key string, limit int64) ([]byte, error)
	// Stat returns an object without its content. The error wraps ErrNotFound if there is none.
	Stat(ctx context.Context, key string) (Entry, error)
	// Put writes an object atomically; an existing object stays unchanged, and created is false.
	Put(ctx context.Context, key string, data []byte) (created bool, err error)
	// Replace writes an object atomically, in place of an existing one.
	Replace(ctx context.Context, key string, data []byte) error
	// Remove removes an object that is there or not.
	Remove(ctx context.Context, key string) error
	// List returns the objects whose keys begin with a prefix, sorted by key.
	List(ctx context.Context, prefix string) ([]Entry, error)
	// URL returns the name of the bucket, or of an object in it, for messages. It has no secrets.
	URL(key string) string
}

// Entry is an object of a Bucket.
type Entry struct {
	Key      string
	Size     int64     // bytes
	Modified time.Time // when it was written, by the server's clock
}

// Errors of a Bucket.
var (
	ErrNotFound = errors.New("not there")
	// ErrUnavailable: the bucket has no tables, or the server does not answer.
	ErrUnavailable = errors.New("no tables can be taken")
	// ErrDamaged: the content of an object does not match its name.
	ErrDamaged = errors.New("damaged")
	// ErrNoTables: nothing was ever pushed there.
	ErrNoTables = errors.New("no symbol tables were pushed there")
)

const (
	formatKey  = "symbolize-remote"
	formatHead = "symbolize remote "
	formatText = formatHead + "2\n"

	manifestDir = "v2/manifests/"
	usesDir     = "v2/used/"
	contentDir  = "v2/inputs/"
)

// check refuses a bucket without tables, or of another version.
func check(ctx context.Context, b Bucket) error {
	text, err := b.Get(ctx, formatKey, 256)
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%s: %w", b.URL(""), ErrNoTables)
	case err != nil:
		return err
	case string(text) == formatText:
		return nil
	case string(text) == formatHead+"1\n":
		return fmt.Errorf("%s: %w: fill a new one with `symbolize store push URL`",
			b.URL(formatKey), store.ErrOldSchema)
	case strings.HasPrefix(string(text), formatHead):
		return fmt.Errorf("%s: %w: %q", b.URL(formatKey), store.ErrVersion, text)
	}
	return damagef("%s: its content is %.40q", b.URL(formatKey), text)
}

// objectDir returns the prefix of the keys of an object's manifests.
func objectDir(id buildid.ID) string {
	return manifestDir + id.Hex()[:2] + "/" + store.ObjectName(id) + "/"
}

// objectPrefix returns a prefix of the keys of all objects that id matches.
func objectPrefix(id buildid.ID) string {
	if id.Exact() && id.Len() <= buildid.KeyLen {
		return objectDir(id)
	}
	// The zeros at the end may be no part of the ID, and bytes after a key's length do not count.
	digits := id.Hex()[:2*min(id.Len(), buildid.KeyLen)]
	for len(digits) > 2 && strings.HasSuffix(digits, "00") {
		digits = digits[:len(digits)-2]
	}
	return manifestDir + digits[:2] + "/" + id.Space().String() + "-" + digits
}

func contentKey(id store.Digest) string { return contentDir + id.String()[:2] + "/" + id.String() }

// damagef returns an error that wraps ErrDamaged.
func damagef(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrDamaged)...)
}
