package config

// Applies says from when on a changed value of a key holds in a cabrank that
// runs, and is called as the command is that makes a change hold. Every class includes those above it: a restart reloads first, and a new
// cabrank reads all.
type Applies string

const (
	// ByReload values hold at once for what comes: calls and connections that
	// are there keep what they began with, where it matters to them.
	ByReload Applies = "reload"
	// ByRestart values are handed to worker processes when these start, so they
	// hold with the next process of each worker.
	ByRestart Applies = "restart"
	// ByUpgrade values are fixed when cabrank starts.
	ByUpgrade Applies = "upgrade"
)

// meaning says for people how a change takes effect.
func (a Applies) meaning() string {
	return string(a) + map[Applies]string{ByReload: ": at once", ByRestart: ": with the next process of each worker", ByUpgrade: ": with the next cabrank"}[a]
}
