//go:build !linux

// Package alarm waits for short times.
package alarm

import "time"

// Alarm waits as exactly as the runtime can.
type Alarm struct{}

// New cannot fail.
func New() (*Alarm, error) { return &Alarm{}, nil }

// Sleep returns after d, or at once if d is not above 0.
func (*Alarm) Sleep(d time.Duration) error {
	time.Sleep(d)
	return nil
}

// Close does nothing.
func (*Alarm) Close() {}
