// Package cli is what our programs have in common on the command line: exit
// statuses and errors for people, help, what is known of the terminal, and flags that
// several commands have.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Exit statuses, as documented in the help of the command.
const (
	Done   = 0 // all was done; a stop by a signal is that too
	Failed = 1 // something failed while running
	Usage  = 2 // the command line or the configuration is wrong; nothing was started
	Cut    = 3 // all was done, but calls were cut that had not ended in time
)

// ErrCut is the end of a command that has cut calls, which its last line has said.
var ErrCut error = &exitError{status: Cut, cause: errors.New("calls were cut"), told: true}

// exitError is an error with the exit status that it means. Other errors mean Failed.
type exitError struct {
	status int
	cause  error
	told   bool // it has been said, and is not printed again
}

func (e *exitError) Error() string { return e.cause.Error() }
func (e *exitError) Unwrap() error { return e.cause }

// Told is the end of a command that has said by itself why.
func Told(status int, cause error) error {
	return &exitError{status: status, cause: cause, told: true}
}

// UsageError marks an error as a fault of the command line or the
// configuration. A nil error stays nil.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{status: Usage, cause: err}
}

// Status returns the status that err means.
func Status(err error) int {
	var withStatus *exitError
	switch {
	case err == nil:
		return Done
	case errors.As(err, &withStatus):
		return withStatus.status
	}
	return Failed
}

// IsTold reports whether an error has been said already.
func IsTold(err error) bool {
	withStatus, found := errors.AsType[*exitError](err)
	return found && withStatus.told
}

// PrintError writes an error for people: each of its lines with the name of the
// program before it. No usage text follows, which would push the line that
// matters off the screen.
func PrintError(stderr io.Writer, program string, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "%s: %s\n", program, strings.TrimRight(line, "\r\n"))
	}
}
