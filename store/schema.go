package store

import (
	"fmt"

	"symbolize/buildid"
)

// SchemaVersion is the version of keys and values, and of the directory. A store with a newer
// version is refused with ErrVersion; a store with an older one is read, and gets this version with
// the next generation. 2 added sources of kind JIT, variants and blobs, which programs of version 1
// would regard as damage and drop.
const SchemaVersion = 2

// CheckSchema refuses a schema that is newer than SchemaVersion, of the store or archive at path.
func CheckSchema(path string, schema int) error {
	if schema <= SchemaVersion {
		return nil
	}
	return fmt.Errorf("%s: %w: schema %d, this program knows %d", path, ErrVersion, schema,
		SchemaVersion)
}

// ObjectName is the name of an object in archives and lists: SPACE-HEX of its build ID.
func ObjectName(id buildid.ID) string { return id.Space().String() + "-" + id.Hex() }
