package config

// Applies says from when on a changed value of a key holds in a cabrank that
// runs. Every class includes those above it: a restart reloads first, and a new
// cabrank reads all.
type Applies uint8

const (
	// ByReload values hold at once for what comes: calls and connections that
	// are there keep what they began with, where it matters to them.
	ByReload Applies = iota + 1
	// ByRestart values are handed to worker processes when these start, so they
	// hold with the next process of each worker.
	ByRestart
	// ByUpgrade values are fixed when cabrank starts.
	ByUpgrade
)

// String returns "reload", "restart" or "upgrade", as the command is called that
// makes a change hold.
func (a Applies) String() string { return []string{"unknown", "reload", "restart", "upgrade"}[a] }

// meaning says for people how a change takes effect.
func (a Applies) meaning() string {
	return a.String() + []string{"", ": at once", ": with the next process of each worker", ": with the next cabrank"}[a]
}
