package config

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cabrank/cabrank/internal/strictyaml"
)

// Value is one effective setting.
type Value struct {
	Key    string
	Value  string // as it could be written in a file
	Origin Origin
}

// Values returns every setting in the order of the table, and the command at
// the end. A setting with entries has one value for each, with its own origin.
func (c *Config) Values() (values []Value) {
	for _, key := range ownKeys() { // those of the table first
		if _, written := c.Written(key.Name); !written && key.Hidden != "" {
			continue
		}
		var lines []line
		if key.kind.nested != nil {
			lines = key.kind.linesOf(key.field(c), false)
		}
		if lines == nil {
			lines = []line{{text: key.kind.show(key.field(c))}}
		}
		for _, l := range lines {
			values = append(values, Value{key.Name, l.String(), c.origins[key.Name+l.path]})
		}
	}
	return append(values, Value{"command", kinds()["command"].show(&c.Command), c.commandOrigin})
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

// Explain writes what a key is, or a part of one: what it means, what it takes, and how.
//
// Errors: a line with what was probably meant by a name that there is not, or with what has
// become of it.
func Explain(w io.Writer, name string) error {
	var known []string
	for _, key := range fileKeys() {
		names := append([]string{key.Name}, key.Aliases...)
		for _, part := range key.parts() {
			names = append(names, part.Name)
		}
		if slices.Contains(names, name) {
			return key.explain(w, name)
		}
		if key.Hidden == "" {
			known = append(known, names...)
		}
	}
	if below := under(Keys(), name); below != "" {
		_, err := fmt.Fprintf(w, "%s\n  a section, with %s\n", name, below)
		return err
	}
	if now := whereMoved(name); now != "" {
		return fmt.Errorf("%s: %s", name, now)
	}
	return fmt.Errorf("unknown key %s%s", quote(name), strictyaml.DidYouMean("", name, known))
}

// explain writes about the key, and about one part of it, or about all.
func (k Key) explain(w io.Writer, name string) error {
	takesEffect := map[Applies]string{ByReload: ": at once", ByRestart: ": with the next process of each worker", ByUpgrade: ": with the next cabrank"}
	lines := [][2]string{{"default", k.Default}, {"allowed", k.Allowed()}, {"variable", k.Env}, {"change", string(k.Applies) + takesEffect[k.Applies]}, {"docs", "docs/" + cmp.Or(k.docs, "configuration") + ".md"}}
	help := k.Help
	if k.Hidden != "" {
		help, lines = "one of gruf-relay's names, see docs/why.md", lines[1:3]
	}
	for _, part := range k.parts() {
		switch name {
		case part.Name:
			help, lines[0][1], lines[1][1] = part.Help, part.Default, part.Allowed()
		case k.Name:
			lines = append(lines, [2]string{last(part.Name), part.Help + " (" + part.Allowed() + ")"})
		}
	}
	if k.Flag != "" {
		lines = slices.Insert(lines, 2, [2]string{"flag", "--" + k.Flag + " " + k.Arg})
	}
	if len(k.Aliases) > 0 {
		others := slices.DeleteFunc(append([]string{k.Name}, k.Aliases...), func(n string) bool { return n == name })
		lines = append(lines, [2]string{"also", strings.Join(others, ", ")})
	}
	fmt.Fprintf(w, "%s\n  %s\n", name, help)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintf(table, "  %s\t%s\n", line[0], line[1])
	}
	return table.Flush()
}
