package config

import (
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
)

// Sources is everything that Load looks at.
type Sources struct {
	Flags    map[string]string                 // the flags that were given, by name without dashes
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

// setting is one key with one written value.
type setting struct {
	key    Key
	value  strictyaml.Node
	origin Origin
}

// written is the setting of a key by the text of a flag or a variable.
func (k Key) written(text string, from Origin) setting {
	return setting{k, strictyaml.Text(text), from}
}

// Load makes the configuration out of its sources.
//
// Errors: Faults, with one line for everything that is wrong in any source;
// the Config is nil then. Contradictions between values are looked for only
// when every value by itself is right, but for those within the rule of a method.
func Load(sources Sources) (*Config, error) {
	environ := parseEnviron(sources.Environ)
	config, faults := gather(sources, environ)
	config.setCommand(sources.Command)
	if config.tidyMethods(); len(faults) == 0 {
		faults = config.contradictions()
	} else {
		faults = config.withMethodRules(faults)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	config.Workers.Count.Settle()
	config.Workers.Slots.Settle()
	config.Warnings = append(unknownVariables(environ, config.namedVariables()...), config.warnings()...)
	return config, nil
}

// files are those that may be read, and who names the only one; nobody: they are looked for.
func (s Sources) files(environ map[string]string) (names []string, by Origin) {
	if name, given := s.Flags[ConfigFlag]; given {
		return []string{name}, Origin{Flag: ConfigFlag}
	}
	if name := environ[ConfigVariable]; name != "" {
		return []string{name}, Origin{Variable: ConfigVariable}
	}
	return DefaultFiles(), Origin{}
}

// HasFile reports whether the sources name a file, or one has a name that is
// looked for. Whether it can be read is for Load to say.
func HasFile(sources Sources) bool {
	names, by := sources.files(parseEnviron(sources.Environ))
	return by != (Origin{}) || slices.ContainsFunc(names, func(name string) bool {
		_, err := sources.ReadFile(name)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// LoadLog returns how the log is wanted by sources that Load refuses: by what is
// right in them.
func LoadLog(sources Sources) Log {
	config, _ := gather(sources, parseEnviron(sources.Environ))
	return config.Log
}

// gather reads all sources. What is wrong in them is left as it was.
func gather(sources Sources, environ map[string]string) (*Config, Faults) {
	config := &Config{origins: map[string]Origin{}}
	config.setDefaults(ownKeys(), sources)
	faults := config.readFile(sources, environ)
	faults = append(faults, config.apply(variableSettings(allKeys(), environ))...)
	fromFlags, found := flagSettings(sources.Flags)
	return config, append(append(faults, found...), config.apply(fromFlags)...)
}

func (c *Config) setDefaults(keys []Key, of Sources) {
	for _, key := range keys {
		text := key.Default
		if key.measured != nil {
			text = strconv.Itoa(key.measured(max(of.CPUs, 1), max(of.Procs, 1)))
		}
		if err := key.kind.set(key.field(c), text); err != nil {
			panic("internal error: default of " + key.Name + ": " + err.Error()) //nolint:forbidigo // the table of keys is wrong
		}
	}
}

// apply stores settings in their order; later ones win.
func (c *Config) apply(settings []setting) Faults {
	faults := wholesAndParts(settings)
	for _, s := range settings {
		faults = append(faults, c.applyOne(s)...)
	}
	return faults
}

// applyOne stores a value, in place of all that an earlier source gave, and remembers where
// it and each part of it stands. Of a value in a file the faults stay with its node.
func (c *Config) applyOne(s setting) (faults Faults) {
	n, at := s.value, places{}
	if _, hasParts := s.key.kind.(structure); hasParts && s.origin.File == "" {
		var err error
		if n, err = parseText(n.Value()); err != nil {
			return Faults{{s.origin, s.key.Name, err.Error(), s.key.Allowed()}}
		}
	}
	n.Key = s.key.Name
	store(s.key.kind, s.key.field(c), n, at)
	if s.origin.File == "" {
		faults = faultsIn(n, s.origin)
	}
	for i := range faults {
		faults[i].What += s.serviceLinkHint()
	}
	maps.DeleteFunc(c.origins, func(key string, _ Origin) bool { return s.key.covers(key) })
	for path, line := range at {
		c.origins[path] = s.origin.on(line)
	}
	c.origins[s.key.Name] = s.origin
	if s.key.Of != "" {
		c.origins[s.key.Of] = s.origin
	}
	return faults
}

// faultsIn returns what is wrong with values that come from one place.
func faultsIn(n strictyaml.Node, from Origin) (faults Faults) {
	for _, f := range n.Faults() {
		faults = append(faults, Fault{from.on(f.Line), f.Key, f.What, f.Allowed})
	}
	return faults
}

// wholesAndParts refuses a key beside one of gruf-relay's for a part of its value, in one
// source: one of them would be lost.
func wholesAndParts(settings []setting) (faults Faults) {
	for _, part := range settings {
		for _, whole := range settings {
			if part.key.Of != "" && whole.key.Name == part.key.Of {
				what := fmt.Sprintf("is a part of %s, which is given, too (%s)", whole.key.Name, whole.origin)
				faults = append(faults, Fault{part.origin, part.key.Name, what, "one of the two"})
			}
		}
	}
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
	if s.origin.Variable == "" || !strings.HasPrefix(s.value.Value(), "tcp://") {
		return ""
	}
	return " (set by Kubernetes for a Service of that name? enableServiceLinks: false stops it)"
}

// setCommand decides what workers run: without a command of the operator's there
// are none beside upstreams.
func (c *Config) setCommand(command []string) {
	switch {
	case len(command) > 0:
		c.Command, c.commandOrigin = command, Origin{Command: true}
	case len(c.Workers.Command) > 0:
		c.Command, c.commandOrigin = c.Workers.Command, c.origins["workers.command"]
	case len(c.Upstreams) > 0:
		c.Command = nil
	default:
		c.Command = DefaultCommand()
	}
}

// readFile finds the file, reads it and remembers its name.
func (c *Config) readFile(sources Sources, environ map[string]string) Faults {
	names, by := sources.files(environ)
	for _, name := range names {
		content, err := sources.ReadFile(name)
		switch {
		case err == nil:
			c.File = name
			settings, root := parseTable(name, content, fileKeys())
			return append(c.apply(settings), faultsIn(root, Origin{File: name})...)
		case by == (Origin{}) && errors.Is(err, fs.ErrNotExist):
			continue
		case by == (Origin{}):
			by.File = name
		}
		return Faults{{Origin: by, What: fmt.Sprintf("cannot read %s: %s", quote(name), cause(err)), Allowed: "a readable YAML file"}}
	}
	return nil
}

// cause returns an error of the file system without the path it repeats.
func cause(err error) string {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err.Error()
	}
	return err.Error()
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

func variableSettings(keys []Key, environ map[string]string) []setting {
	var settings []setting
	for _, key := range keys {
		if value, set := environ[key.Env]; set {
			settings = append(settings, key.written(value, Origin{Variable: key.Env}))
		}
	}
	return settings
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
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && !info.IsDir() && name != os.DevNull: // to read a folder is an error of its own
		return nil, errors.New("is a pipe or a device, which cannot be read again")
	}
	return io.ReadAll(io.LimitReader(file, maxFileSize+1))
}
