package ingest

import (
	"fmt"
	"strings"
)

// EventError is the error for a capture that lacks the event whose samples are asked for.
type EventError struct {
	Capture string
	Event   string
	Has     []string // names of the events that it has, if known
}

// Error returns the capture, the event and those that there are.
func (e *EventError) Error() string {
	text := fmt.Sprintf("%s: no event %q in it", e.Capture, e.Event)
	if len(e.Has) > 0 {
		text += ", only " + strings.Join(e.Has, ", ")
	}
	return text
}
