package worker

import (
	"strings"
	"testing"
	"time"
)

type deafRegistry struct{}

func (deafRegistry) Up(string, string, string) {}
func (deafRegistry) Down(string)               {}
func (deafRegistry) Suspect(string, bool)      {}
func (deafRegistry) Cut(string)                {}
func (deafRegistry) Outage(bool)               {}

func validOptions() Options {
	return Options{
		Count: 2, Command: []string{"serve"}, Transport: "tcp", StartPort: 9000, Slots: 5, Rank: deafRegistry{},
	}
}

// Bad input is one line that says what, where and what is allowed.
func TestNewRefusesBadOptions(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(*Options)
		want string
	}{
		{"no worker", func(o *Options) { o.Count = 0 }, "worker count is 0: at least 1"},
		{"no slot", func(o *Options) { o.Slots = -1 }, "slots of a worker are -1: at least 1"},
		{"no command", func(o *Options) { o.Command = nil }, "command is empty"},
		{"no registry", func(o *Options) { o.Rank = nil }, "registry"},
		{"transport", func(o *Options) { o.Transport = "udp" }, `"udp": tcp and unix are allowed`},
		{"host name", func(o *Options) { o.Host = "localhost" }, `"localhost": an IP address`},
		{"port 0", func(o *Options) { o.StartPort = 0 }, "start port is 0"},
		{"ports above the last", func(o *Options) { o.StartPort = 65435 }, "to 65536, within 1 to 65535"},
		{"negative time", func(o *Options) { o.StopTimeout = -time.Second }, "stop timeout of workers is -1s"},
		{"{port} with unix", func(o *Options) { o.Transport = "unix"; o.Command = []string{"serve", "-p", "{port}"} }, `"{port}"`},
		{"{host} with unix", func(o *Options) { o.Transport = "unix"; o.Command = []string{"serve", "{host}:1"} }, `"{host}:1"`},
		{"{port} in a hook with unix", func(o *Options) { o.Transport = "unix"; o.Hooks.BeforeStop = []string{"say", "{port}"} }, "of hook before_stop: a unix"},
		{"{port} in the environment with unix", func(o *Options) { o.Transport, o.Environment = "unix", map[string]string{"A": "{port}"} }, "of the workers' environment: a unix"},
		{"variable without a name", func(o *Options) { o.Environment = map[string]string{"A=B": "c"} }, `variable "A=B"`},
		{"hook without a program", func(o *Options) { o.Hooks.AfterReady = []string{"", "x"} }, "hook after_ready has an empty program"},
		{"hook in no time", func(o *Options) { o.Hooks.Timeout = -1 }, "hook timeout"},
		{"warm-up method", func(o *Options) { o.WarmUp.Method = "Cart.List" }, `"Cart.List"`},
		{"recycling", func(o *Options) { o.Recycle.Calls = -1 }, "recycled are -1"},
		{"run time", func(o *Options) { o.MaxRunTime = -1 }, "max run time of workers is -1ns"},
	} {
		options := validOptions()
		test.edit(&options)
		_, err := New(options)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %q", test.name, err, test.want)
		}
	}
}

func TestNewFillsInDefaults(t *testing.T) {
	s, err := New(validOptions())
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	if o.BootTimeout != time.Minute || o.StopTimeout != 5*time.Second || o.HealthInterval != 5*time.Second || o.HealthTimeout != 5*time.Second {
		t.Errorf("times %v %v %v %v", o.BootTimeout, o.StopTimeout, o.HealthInterval, o.HealthTimeout)
	}
	if o.Host != "127.0.0.1" || o.Executable == "" || o.Logger == nil || o.Activity == nil {
		t.Errorf("parts are missing: %+v", o)
	}
}

// A supervisor that was never started can be stopped, and is then used up.
func TestStopBeforeStart(t *testing.T) {
	s, err := New(validOptions())
	if err != nil {
		t.Fatal(err)
	}
	s.Stop(t.Context())
	s.Stop(t.Context())
	if err := s.Start(t.Context()); err == nil {
		t.Error("Start after Stop succeeded")
	}
	if !s.Alive() || s.EverReady() {
		t.Errorf("alive %v, ever ready %v; want true, false", s.Alive(), s.EverReady())
	}
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
	if len(seen) != 27 || seen["unknown"] {
		t.Errorf("labels %v", seen)
	}
}
