package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/cabrank/cabrank/internal/cgroup"
	"github.com/cabrank/cabrank/internal/strictyaml"
	"github.com/cabrank/cabrank/internal/trace"
)

// ConfigFlag and ConfigVariable name the file to read.
const (
	ConfigFlag     = "config"
	ConfigVariable = "CONFIG_PATH"
)

// Sources is everything that Load looks at.
type Sources struct {
	Flags    map[string]string                 // those of Flags that were given, by name without dashes
	Environ  []string                          // "NAME=value", as from os.Environ
	ReadFile func(name string) ([]byte, error) // reads the file; names are relative to the working directory
	Command  []string                          // what followed "--"
	CPUs     int                               // usable CPUs, at least 1
	Procs    int                               // GOMAXPROCS, at least 1
}

// System returns the sources of this process; flags and command are added by
// the caller.
func System() Sources {
	return Sources{
		Environ:  os.Environ(),
		ReadFile: ReadFile,
		CPUs:     cgroup.UsableCPUs(os.DirFS("/"), runtime.NumCPU()),
		Procs:    runtime.GOMAXPROCS(0),
	}
}

// DefaultFiles are tried in this order when no file is named; the second lets
// a gruf-relay installation start unchanged.
func DefaultFiles() []string { return []string{"cabrank.yml", "gruf-relay.yml"} }

// Load makes the configuration out of its sources.
//
// Errors: Faults, with one line for everything that is wrong in any source;
// the Config is nil then. Contradictions between values are looked for only
// when every value by itself is right.
func Load(sources Sources) (*Config, error) {
	environ := parseEnviron(sources.Environ)
	config, faults := gather(sources, environ)
	config.setCommand(sources.Command)
	config.Workers.Count.Settle()
	config.Workers.Slots.Settle()
	config.sortMethods()
	config.Warnings = append(config.unknownVariables(environ), config.warnings()...)
	return config.checked(append(faults, config.tracingFaults(environ)...))
}

// tracingFaults looks at OpenTelemetry's variables, if spans are wanted.
func (c *Config) tracingFaults(environ map[string]string) Faults {
	if c.Tracing.Endpoint == "" {
		return nil
	}
	_, err := trace.Read(c.Tracing.Endpoint, func(name string) string { return environ[name] })
	if err == nil {
		return nil
	}
	return Faults{c.FaultAt("tracing.endpoint", err.Error(), "")}
}

// checked returns the configuration if it has no faults, and its values no contradictions.
func (c *Config) checked(faults Faults) (*Config, error) {
	if len(faults) == 0 {
		faults = c.contradictions()
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return c, nil
}

// HasFile reports whether the sources name a file, or one has a name that is
// looked for. Whether it can be read is for Load to say.
func HasFile(sources Sources) bool {
	_, _, by, err := sources.find(parseEnviron(sources.Environ))
	return by != (Origin{}) || !errors.Is(err, fs.ErrNotExist)
}

// LoadLog returns how the log is wanted by sources that Load refuses: by what is
// right in them.
func LoadLog(sources Sources) Log {
	config, _ := gather(sources, parseEnviron(sources.Environ))
	return config.Log
}

// gather reads all sources. What is wrong in them is left as it was.
func gather(sources Sources, environ map[string]string) (*Config, Faults) {
	config := standard(sources)
	faults := config.readFile(sources, environ)
	faults = append(faults, config.apply(settingsOf(allKeys(), environ, ofVariable, byVariable))...)
	return config, append(faults, config.apply(settingsOf(Flags(), sources.Flags, ofFlag, byFlag))...)
}

// standard is the configuration that nobody has set anything of.
func standard(sources Sources) *Config {
	config := &Config{origins: map[string]Origin{}}
	for _, key := range ownKeys() {
		text := key.Default
		switch cpus := max(sources.CPUs, 1); {
		case text == usableCPUs && key.Hidden == "":
			text = strconv.Itoa(min(cpus, maxPortSpan-1)) // one is for the spare of a roll
		case text == usableCPUs:
			text = strconv.Itoa(min(cpus, max(sources.Procs, 1), maxShards))
		}
		config.setDefault(key, text)
	}
	return config
}

func (c *Config) setDefault(key Key, text string) {
	if err := key.kind.set(key.field(c), text); err != nil {
		panic("internal error: default of " + key.Name + ": " + err.Error()) //nolint:forbidigo // the table of keys is wrong
	}
}

// setting is one key with one written value.
type setting struct {
	key    Key
	value  strictyaml.Node
	origin Origin
}

// settingsOf are the settings of keys by texts that are given by name.
func settingsOf(keys []Key, given map[string]string, name func(Key) string, from func(name string) Origin) (all []setting) {
	for _, key := range keys {
		if text, is := given[name(key)]; is {
			all = append(all, setting{key, strictyaml.Text(text), from(name(key))})
		}
	}
	return all
}

func ofFlag(k Key) string     { return k.Flag }
func ofVariable(k Key) string { return k.Env }

// apply stores the settings of one source in their order. A key beside one of gruf-relay's
// for a part of its value is refused: one of them would be lost.
func (c *Config) apply(settings []setting) (faults Faults) {
	given := map[string]Origin{}
	for _, s := range settings {
		given[s.key.Name] = s.origin
	}
	for _, s := range settings {
		if whole, is := given[s.key.Of]; is {
			what := fmt.Sprintf("is a part of %s, which is given, too (%s)", s.key.Of, whole)
			faults = append(faults, s.origin.fault(s.key.Name, what, "one of the two"))
		}
		faults = append(faults, c.applyOne(s)...)
	}
	return faults
}

// applyOne stores a value, in place of all that an earlier source gave, and remembers where
// it and each part of it stands. Of a value in a file the faults stay with its node.
func (c *Config) applyOne(s setting) (faults Faults) {
	n, at, inFile := s.value, places{}, s.origin.Line > 0
	if s.key.kind.nested != nil && !inFile {
		var err error
		if n, err = parseText(n.Value()); err != nil {
			return Faults{s.origin.fault(s.key.Name, err.Error(), s.key.Allowed())}
		}
	}
	n.Key = s.key.Name
	s.key.kind.store(s.key.field(c), n, at)
	if !inFile {
		for _, f := range n.Faults() {
			faults = append(faults, s.origin.fault(f.Key, f.What+s.serviceLinkHint(), f.Allowed))
		}
	}
	for path, line := range at {
		origin := s.origin
		if inFile {
			origin.Line = line
		}
		c.origins[path] = origin
	}
	c.origins[cmp.Or(s.key.Of, s.key.Name)] = s.origin
	return faults
}

// parseText reads the text of a variable as the value of a key in a file.
func parseText(text string) (strictyaml.Node, error) {
	n := strictyaml.Read("", []byte(text))
	for _, fault := range n.Faults() { // one at most
		return n, errors.New(fault.What)
	}
	if !n.Given() {
		return n, errors.New("has no value")
	}
	return n, nil
}

// serviceLinkHint explains a value that nobody wrote: for a Service called
// metrics, Kubernetes sets METRICS_PORT to tcp://10.0.0.1:9394 in every pod.
func (s setting) serviceLinkHint() string {
	if s.origin != byVariable(s.key.Env) || !strings.HasPrefix(s.value.Value(), "tcp://") {
		return ""
	}
	return " (set by Kubernetes for a Service of that name? enableServiceLinks: false stops it)"
}

// setCommand decides what workers run: without a command of the operator's there
// are none beside upstreams.
func (c *Config) setCommand(command []string) {
	switch {
	case len(command) > 0:
		c.Command, c.commandOrigin = command, byCommandLine()
	case len(c.Workers.Command) > 0:
		c.Command, c.commandOrigin = c.Workers.Command, c.origins["workers.command"]
	case len(c.Upstreams) > 0:
		c.Command = nil
	default:
		c.Command = DefaultCommand()
	}
}

// find reads the file that is named, or the first there is of those that are looked for. by
// is who names it.
func (s Sources) find(environ map[string]string) (name string, content []byte, by Origin, err error) {
	names := DefaultFiles()
	if flag, given := s.Flags[ConfigFlag]; given {
		names, by = []string{flag}, byFlag(ConfigFlag)
	} else if variable := environ[ConfigVariable]; variable != "" {
		names, by = []string{variable}, byVariable(ConfigVariable)
	}
	for _, name = range names {
		if content, err = s.ReadFile(name); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return name, content, by, err
}

// readFile reads the file, if there is one, and remembers its name.
func (c *Config) readFile(sources Sources, environ map[string]string) Faults {
	name, content, by, err := sources.find(environ)
	switch looked := by == (Origin{}); {
	case err == nil:
		c.File = name
		settings, root := parseTable(name, content, fileKeys())
		return append(c.apply(settings), root.Faults()...)
	case looked && errors.Is(err, fs.ErrNotExist):
		return nil
	case looked:
		by.Place = name
	}
	return Faults{by.unreadable(name, err)}
}

// unreadable is told of a file without the path that the error repeats.
func (o Origin) unreadable(name string, err error) Fault {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	return o.fault("", fmt.Sprintf("cannot read %s: %s", quote(name), err), "a readable YAML file")
}

// parseEnviron makes a map of the variables that are set and not empty. Of a
// name that appears twice the first counts, as for os.Getenv.
func parseEnviron(environ []string) map[string]string {
	variables := make(map[string]string, len(environ))
	for _, pair := range slices.Backward(environ) {
		name, value, _ := strings.Cut(pair, "=")
		variables[name] = value
	}
	maps.DeleteFunc(variables, func(_, value string) bool { return value == "" })
	return variables
}

// ReadFile reads a file, but never more than one byte above what a configuration may have: a
// wrong path must not fill the memory. Nor may it wait, as for the other end of a
// pipe, which could not be read again by a reload either.
func ReadFile(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	empty, _ := os.Stat(os.DevNull)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && !info.IsDir() && !os.SameFile(info, empty): // to read a folder is an error of its own
		return nil, errors.New("is a pipe or a device, which cannot be read again")
	}
	return io.ReadAll(io.LimitReader(file, strictyaml.MostBytes+1))
}
