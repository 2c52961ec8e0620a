package config

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Value is one effective setting.
type Value struct {
	Key    string
	Value  string // as it could be written in a file
	Origin Origin
}

// Values returns every setting in the order of the table, and the command at
// the end. A setting with entries has one value for each, with its own origin.
func (c *Config) Values() []Value {
	var values []Value
	for _, key := range ownKeys() { // those of the table first
		if _, written := c.Written(key.Name); written || !key.Hidden {
			values = append(values, c.valuesOf(key)...)
		}
	}
	command := none
	if len(c.Command) > 0 {
		command = showCommand(c.Command)
	}
	return append(values, Value{"command", command, c.commandOrigin})
}

func (c *Config) valuesOf(key Key) (values []Value) {
	pathOf := entryPath
	if key.isSingle() {
		pathOf = partPath
	}
	if parts, has := key.kind.(structure); has {
		for _, entry := range parts.linesOf(key.field(c)) {
			values = append(values, Value{key.Name, entry.String(), c.origins[pathOf(key.Name, entry.name)]})
		}
	}
	if values == nil {
		return []Value{{key.Name, key.kind.show(key.field(c)), c.origins[key.Name]}}
	}
	return values
}

// showCommand joins arguments with spaces and quotes those that a reader would
// otherwise take apart wrongly.
func showCommand(command []string) string {
	shown := make([]string, len(command))
	for i, argument := range command {
		if argument == "" || strings.ContainsAny(argument, " \t\r\n\"'\\") {
			argument = fmt.Sprintf("%q", argument)
		}
		shown[i] = argument
	}
	return strings.Join(shown, " ")
}

// WriteTable writes the effective configuration for people: one line per
// setting with its origin and its value. The value is last because it may be
// long: a command, a list.
func (c *Config) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tORIGIN\tVALUE")
	for _, value := range c.Values() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", value.Key, value.Origin, value.Value)
	}
	return table.Flush()
}

// WriteKeys writes the table of keys for people: what can be set, how, and to
// what.
func WriteKeys(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tVARIABLE\tDEFAULT\tCHANGE\tALLOWED")
	for _, key := range Keys() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", key.Name, key.Env, key.Default, key.Applies, key.Allowed())
		for _, part := range key.parts() {
			fmt.Fprintf(table, "%s\t\t%s\t\t%s\n", part.Name, part.Default, part.Allowed())
		}
	}
	return table.Flush()
}
