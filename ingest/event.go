package ingest

import (
	"fmt"
	"strings"
)

// EventError is the error for a capture without the requested event.
type EventError struct {
	Capture string
	Event   string
	Has     []string // names of the events that it has, if known
}

// Error names the capture, the event and the capture's own events.
func (e *EventError) Error() string {
	text := fmt.Sprintf("%s: no event %q in it", e.Capture, e.Event)
	if len(e.Has) > 0 {
		text += ", only " + strings.Join(e.Has, ", ")
	}
	return text
}
