//go:build !linux

// Package alarm waits for short times.
package alarm

import "time"

// Alarm waits as exactly as the runtime can.
type Alarm struct{}

// New cannot fail.
func New() (*Alarm, error) { return &Alarm{}, nil }

// Wait returns after d, or at once if d is not above 0.
func (*Alarm) Wait(d time.Duration) error {
	time.Sleep(d)
	return nil
}

// Sleep is Wait.
func (a *Alarm) Sleep(d time.Duration) error { return a.Wait(d) }

// Close does nothing.
func (*Alarm) Close() {}
