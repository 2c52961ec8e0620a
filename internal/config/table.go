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
// the end.
func (c *Config) Values() []Value {
	var values []Value
	for _, key := range Keys() {
		values = append(values, Value{key.Name, key.kind.show(key.field(c)), c.origins[key.Name]})
	}
	command := none
	if len(c.Command) > 0 {
		command = showCommand(c.Command)
	}
	return append(values, Value{"command", command, c.commandOrigin})
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
	fmt.Fprintln(table, "KEY\tVARIABLE\tDEFAULT\tALLOWED")
	for _, key := range Keys() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", key.Name, key.Env, key.ShownDefault(), key.Allowed())
	}
	return table.Flush()
}

// ShownDefault returns the default for a table: never empty.
func (k Key) ShownDefault() string {
	if k.Default == "" {
		return `""`
	}
	return k.Default
}
