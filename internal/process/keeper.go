package process

import (
	"bufio"
	"io"
	"maps"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// keeperGrace is the time between TERM and KILL after the death of cabrank.
	keeperGrace = 2 * time.Second
	// keeperPoll is how often the keeper looks whether all groups are gone.
	keeperPoll = 20 * time.Millisecond
)

// RunKeeper is the body of the hidden subcommand "cabrank keeper": it outlives
// cabrank by at most 2 s and leaves none of its workers (R18).
//
// Shape: in is a pipe that only cabrank writes to, lines "add PGID" and "del
// PGID". When it ends, because cabrank closed it or died, every group that was
// added and not deleted gets TERM, 2 s later KILL. Unknown lines are skipped. The
// result is the exit code, always 0.
//
// It ignores the signals by which people and service managers end cabrank: they may
// reach the keeper first, and without the keeper a frozen worker would stay. Once it
// ignores them it writes a line to out.
func RunKeeper(in io.Reader, out io.Writer) int {
	// PIPE: cabrank does not read out any more if it has died, or has waited long enough.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	_, _ = io.WriteString(out, "begun\n")
	endGroups(readGroups(in), keeperGrace)
	return 0
}

// readGroups follows the list until its end.
func readGroups(in io.Reader) map[Group]struct{} {
	groups := make(map[Group]struct{})
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		verb, number, _ := strings.Cut(lines.Text(), " ")
		group, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		switch verb {
		case "add":
			groups[Group(group)] = struct{}{}
		case "del":
			delete(groups, Group(group))
		}
	}
	return groups
}

// endGroups returns as soon as no group has a process left, at the latest after KILL.
// Zombies belong to init now, which reaps them; then their numbers are free for others.
func endGroups(groups map[Group]struct{}, grace time.Duration) {
	for group := range groups {
		group.Terminate()
	}
	for deadline := time.Now().Add(grace); time.Now().Before(deadline); time.Sleep(keeperPoll) {
		maps.DeleteFunc(groups, func(group Group, _ struct{}) bool { return !group.exists() })
		if len(groups) == 0 {
			return
		}
	}
	for group := range groups {
		group.Kill()
	}
}
