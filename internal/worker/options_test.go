package worker

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

type deafRegistry struct{}

func (deafRegistry) Up(string, string, string) {}
func (deafRegistry) Down(string)               {}
func (deafRegistry) Suspect(string, bool)      {}
func (deafRegistry) Cut(string)                {}
func (deafRegistry) Outage(bool)               {}

func validOptions() Options {
	return Options{
		Settings: Settings{
			Count: Amount{N: 2}, Command: []string{"serve"}, Transport: "tcp", StartPort: 9000, Slots: Amount{N: 5},
			BootTimeout: time.Minute, StopTimeout: 5 * time.Second,
		},
		HealthInterval: 5 * time.Second, HealthTimeout: 5 * time.Second, Rank: deafRegistry{},
	}
}

func TestNewFillsInParts(t *testing.T) {
	s, err := New(validOptions())
	testkit.Must(t, err)
	o := s.options
	testkit.Want(t, o.Executable != "" && o.Logger != nil && o.Activity != nil && o.Output.Writer != nil, "parts are missing: %+v", o)
}

// A supervisor that was never started can be stopped, and is then used up.
func TestStopBeforeStart(t *testing.T) {
	s, err := New(validOptions())
	testkit.Must(t, err)
	s.Stop(t.Context())
	s.Stop(t.Context())
	testkit.Want(t, s.Start(t.Context()) != nil, "Start after Stop succeeded")
	testkit.Want(t, s.Alive() && !s.EverReady(), "alive %v, ever ready %v; want true, false", s.Alive(), s.EverReady())
}

// The states and causes are label values: short, different, and no others.
func TestLabelsAreBounded(t *testing.T) {
	seen := map[string]bool{}
	for _, state := range States() {
		seen[state.String()] = true
	}
	for _, cause := range Causes() {
		seen[cause.String()] = true
	}
	for _, reason := range Reasons() {
		seen[reason.String()] = true
	}
	testkit.Want(t, len(seen) == 27 && !seen["unknown"], "labels %v", seen)
}
