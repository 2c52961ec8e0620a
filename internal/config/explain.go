package config

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

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
		switch there := slices.Contains(names, name); {
		case there && key.Hidden:
			_, err := fmt.Fprintf(w, "%s\n  one of gruf-relay's names, see docs/why.md\n  allowed   %s\n  variable  %s\n", name, key.Allowed(), key.Env)
			return err
		case there:
			return key.explain(w, name)
		case !key.Hidden:
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
	return fmt.Errorf("unknown key %s%s", quote(name), didYouMean("", name, known))
}

// explain writes about the key, and about one part of it, or about all.
func (k Key) explain(w io.Writer, name string) error {
	lines := [][2]string{{"default", k.Default}, {"allowed", k.Allowed()}, {"variable", k.Env}, {"change", k.Applies.meaning()}, {"docs", k.page()}}
	help := k.Help
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

// page names the document that tells most about the key: by the longest name that it
// begins with.
func (k Key) page() string {
	page, longest := "configuration", ""
	for prefix, of := range map[string]string{
		"tls": "callers", "proxies": "callers", "fair": "callers", "limits": "callers",
		"workers": "workers", "hooks": "workers", "warm_up": "workers", "recycle": "workers", "max_run_time": "workers", "hang_timeout": "worker-health",
		"upstream": "upstreams", "dns": "upstreams", "drain_timeout": "control", "pre_stop_delay": "control", "control": "control",
		"queue": "rank", "balance": "rank", "stream_slots": "rank", "on_cancel": "rank", "lanes": "rank", "workers.slots": "rank",
		"methods": "life-of-a-call", "stall_timeout": "life-of-a-call", "explain": "life-of-a-call",
		"metrics": "metrics", "access_log": "metrics", "socket": "socket", "socket.redis": "socket-redis", "auth": "socket-auth",
	} {
		if strings.HasPrefix(k.Name, prefix) && len(prefix) > len(longest) {
			page, longest = of, prefix
		}
	}
	return "docs/" + page + ".md"
}
