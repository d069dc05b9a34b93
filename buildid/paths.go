package buildid

import "path/filepath"

// DebugPaths returns the possible paths of the debug file of a build ID: under each of
// roots (usually /usr/lib/debug), in order, as ROOT/.build-id/xx/yyyy.debug. It
// is empty for an ID that is no GNU one, or too short to be split.
func DebugPaths(id ID, roots []string) []string {
	h := id.Hex()
	if id.space != GNU || id.inexact || len(h) < 4 {
		return nil
	}
	paths := make([]string, 0, len(roots))
	for _, root := range roots {
		paths = append(paths, filepath.Join(root, ".build-id", h[:2], h[2:]+".debug"))
	}
	return paths
}
