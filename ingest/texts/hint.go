package texts

import "fmt"

// hintError is an error with the command or step that fixes it.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }
func (e *hintError) Hint() string  { return e.hint }

// WithHint returns err with the command or step that fixes it, which the method Hint of the result
// returns. The text of the error and the errors it wraps are unchanged.
func WithHint(err error, format string, args ...any) error {
	return &hintError{err: err, hint: fmt.Sprintf(format, args...)}
}
