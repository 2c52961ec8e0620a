package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Exit statuses, as documented in the help of the command.
const (
	exitDone   = 0 // all was done; a stop by a signal is that too
	exitFailed = 1 // something failed while running
	exitUsage  = 2 // the command line or the configuration is wrong; nothing was started
	exitCut    = 3 // all was done, but calls were cut that had not ended in time
)

// errCut is the end of a command that has cut calls, which its last line has said.
var errCut error = &exitError{status: exitCut, cause: errors.New("calls were cut"), told: true}

// exitError is an error with the exit status that it means. Other errors mean
// exitFailed.
type exitError struct {
	status int
	cause  error
	told   bool // it has been said, and is not printed again
}

func (e *exitError) Error() string { return e.cause.Error() }
func (e *exitError) Unwrap() error { return e.cause }

// usageError marks an error as a fault of the command line or the
// configuration. A nil error stays nil.
func usageError(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{status: exitUsage, cause: err}
}

// exitStatus returns the status that err means.
func exitStatus(err error) int {
	var withStatus *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &withStatus):
		return withStatus.status
	}
	return exitFailed
}

// isTold reports whether an error has been said already.
func isTold(err error) bool {
	withStatus, found := errors.AsType[*exitError](err)
	return found && withStatus.told
}

// printError writes an error for people: each of its lines with the name of the
// program before it. No usage text follows, which would push the line that
// matters off the screen.
func printError(stderr io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "cabrank: %s\n", strings.TrimRight(line, "\r\n"))
	}
}
