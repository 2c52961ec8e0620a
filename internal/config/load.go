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

	"go.yaml.in/yaml/v3"

	"github.com/cabrank/cabrank/internal/cgroup"
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

func (s Sources) machine() machine {
	return machine{cpus: max(s.CPUs, 1), procs: max(s.Procs, 1)}
}

// DefaultFiles are tried in this order when no file is named; the second lets
// a gruf-relay installation start unchanged.
func DefaultFiles() []string { return []string{"cabrank.yml", "gruf-relay.yml"} }

// raw is a value as it was written: text, or what the file has in place of it,
// the items of a list or the node of a value with parts.
type raw struct {
	text  string
	items []string // nil: it is no list
	node  *yaml.Node
}

// setting is one key with one written value.
type setting struct {
	key    Key
	value  raw
	origin Origin
}

// Load makes the configuration out of its sources.
//
// Errors: Faults, with one line for everything that is wrong in any source;
// the Config is nil then. Contradictions between values are looked for only
// when every value by itself is right.
func Load(sources Sources) (*Config, error) {
	environ := parseEnviron(sources.Environ)
	config, faults := gather(sources, environ)
	config.setCommand(sources.Command)
	if len(faults) == 0 {
		faults = config.contradictions()
	}
	if len(faults) > 0 {
		return nil, faults
	}
	config.Workers.Count.Settle()
	config.Workers.Slots.Settle()
	config.Warnings = append(unknownVariables(environ, config.namedVariables()...), append(config.withoutEffect(), config.openCalls()...)...)
	return config, nil
}

// HasFile reports whether the sources name a file, or one has a name that is
// looked for. Whether it can be read is for Load to say.
func HasFile(sources Sources) bool {
	if _, flagged := sources.Flags[ConfigFlag]; flagged || parseEnviron(sources.Environ)[ConfigVariable] != "" {
		return true
	}
	return slices.ContainsFunc(DefaultFiles(), func(name string) bool {
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
	config.setDefaults(ownKeys(), sources.machine())
	fromFile, faults := config.readFile(sources, environ)
	faults = append(faults, config.apply(fromFile)...)
	faults = append(faults, config.apply(variableSettings(allKeys(), environ))...)
	fromFlags, found := flagSettings(sources.Flags)
	faults = append(faults, found...)
	faults = append(faults, config.apply(fromFlags)...)
	return config, faults
}

func (c *Config) setDefaults(keys []Key, m machine) {
	for _, key := range keys {
		text := key.Default
		if key.measured != nil {
			text = strconv.Itoa(key.measured(m))
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
		if parts, ok := s.key.kind.(structure); ok {
			faults = append(faults, c.applyParts(parts, s)...)
			continue
		}
		if err := s.value.store(s.key.kind, s.key.field(c)); err != nil {
			faults = append(faults, Fault{s.origin, s.key.Name, err.Error() + s.serviceLinkHint(), s.key.Allowed()})
			continue
		}
		c.origins[s.key.Name] = s.origin
		if s.key.Of != "" {
			c.origins[s.key.Of] = s.origin
		}
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

// applyParts stores a value with parts, in place of all that an earlier source
// gave, and remembers where each part stands.
func (c *Config) applyParts(parts structure, s setting) Faults {
	node := s.value.node
	if node == nil {
		var err error
		if node, err = parseText(s.value.text); err != nil {
			return Faults{{s.origin, s.key.Name, err.Error(), s.key.Allowed()}}
		}
	}
	at := &outline{key: s.key.Name, origin: s.origin, places: map[string]Origin{}}
	parts.setNode(s.key.field(c), node, at)
	if len(at.faults) > 0 {
		return at.faults
	}
	maps.DeleteFunc(c.origins, func(key string, _ Origin) bool { return s.key.covers(key) })
	maps.Copy(c.origins, at.places)
	c.origins[s.key.Name] = s.origin
	return nil
}

// store puts the value in a field of a kind without parts.
func (r raw) store(k kind, field any) error {
	items, takesItems := k.(itemized)
	switch {
	case r.items != nil && takesItems:
		return items.setItems(field, r.items)
	case r.items != nil:
		return errors.New("is a list, not one value")
	}
	return k.set(field, r.text)
}

// serviceLinkHint explains a value that nobody wrote: for a Service called
// metrics, Kubernetes sets METRICS_PORT to tcp://10.0.0.1:9394 in every pod.
func (s setting) serviceLinkHint() string {
	if s.origin.Variable == "" || !strings.HasPrefix(s.value.text, "tcp://") {
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
func (c *Config) readFile(sources Sources, environ map[string]string) ([]setting, Faults) {
	name, origin := environ[ConfigVariable], Origin{Variable: ConfigVariable}
	if flag, given := sources.Flags[ConfigFlag]; given {
		name, origin = flag, Origin{Flag: ConfigFlag}
	}
	candidates, named := []string{name}, name != "" || origin.Flag != ""
	if !named {
		candidates = DefaultFiles()
	}
	for _, candidate := range candidates {
		content, err := sources.ReadFile(candidate)
		if err == nil {
			c.File = candidate
			return parseTable(candidate, content, fileKeys())
		}
		if !named && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if !named {
			origin = Origin{File: candidate}
		}
		what := fmt.Sprintf("cannot read %s: %s", quote(candidate), cause(err))
		return nil, Faults{{Origin: origin, What: what, Allowed: "a readable YAML file"}}
	}
	return nil, nil
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
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if _, twice := variables[name]; !twice {
			variables[name] = value
		}
	}
	for name, value := range variables {
		if value == "" {
			delete(variables, name)
		}
	}
	return variables
}

func variableSettings(keys []Key, environ map[string]string) []setting {
	var settings []setting
	for _, key := range keys {
		if value, set := environ[key.Env]; set {
			settings = append(settings, setting{key, raw{text: value}, Origin{Variable: key.Env}})
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
	case !info.Mode().IsRegular() && !info.IsDir() && !isNullDevice(info): // to read a folder is an error of its own
		return nil, errors.New("is a pipe or a device, which cannot be read again")
	}
	return io.ReadAll(io.LimitReader(file, maxFileSize+1))
}

// isNullDevice reports whether a file is the one that is always empty.
func isNullDevice(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(null, info)
}
