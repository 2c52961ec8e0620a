package scenario

import (
	"slices"
	"testing"
)

// What only the machine knows is filled in where files and commands are named, and the
// scenario itself stays as it is.
func TestPlaced(t *testing.T) {
	s := parsed(t, `
name: placed
method: demo.Jobs/GetJob
proto: ["{examples}/jobs/jobs.proto"]
workers:
  command: ["{cabrank}", run, --, ruby, "{examples}/jobs/ruby/worker.rb", "{addr}"]
  try: [ruby, -e, require "grpc"]
  install: gem install grpc
  env: {LIB: "{examples}"}
  dir: "{examples}"
arms: [{name: a}, {name: b, workers: {command: [true]}}]
loads: [{callers: 1, duration: 1s}]
`)
	placed := s.Placed(Places{Examples: "/tmp/x", Cabrank: "/bin/cabrank"})
	w := placed.Arms[0].Workers
	if want := []string{"/bin/cabrank", "run", "--", "ruby", "/tmp/x/jobs/ruby/worker.rb", "{addr}"}; !slices.Equal(w.Command, want) {
		t.Errorf("command %q", w.Command)
	}
	if w.Dir != "/tmp/x" || !slices.Equal(w.Env, []string{"LIB=/tmp/x"}) || placed.Proto[0] != "/tmp/x/jobs/jobs.proto" {
		t.Errorf("%+v, %q", w, placed.Proto)
	}
	if s.Arms[0].Workers.Dir != "{examples}" || !s.NeedsExamples() {
		t.Errorf("the scenario has changed: %+v", s.Arms[0].Workers)
	}
	// Another command is not tried by what belongs to the first.
	if other := placed.Arms[1].Workers; other.Try != nil || other.Install != "" {
		t.Errorf("%+v", other)
	}
}

func TestTryAndInstallBelongTogether(t *testing.T) {
	_, err := Parse("x.yml", []byte(`
name: x
arms: [{name: a, workers: {command: [true], try: [ruby]}}]
loads: [{callers: 1, duration: 1s}]
`), nil)
	if want := `x.yml:3: arms[1]: arm "a": try is a command, and install says what to do where it fails: give both or none`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
