package health

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// scene is the evidence of a row of the table in docs/worker-health.md.
type scene struct {
	judge Judge
	phase map[string]span // when each phrase of the row holds

	calls, slots int // how many calls run at a time
	giveUp       int // after how many seconds each is given up, 0: never
	renewed      bool
	longest      time.Duration
	used         time.Duration // CPU
}

// span is a time of a scene, seconds.
type span struct{ from, until float64 }

const (
	sceneLasts = 100 // seconds
	sceneTick  = 0.25
)

var (
	bounds    = regexp.MustCompile(` (from|until) (\d+) s`)
	callsThat = regexp.MustCompile(`^(\d+) calls?(?: in (\d+) slots)?(, one after the other)?( given up after (\d+) s)?$`)
	knownRuns = regexp.MustCompile(`^runs of (\d+) s are known$`)
	// said is what the row says of the health question, but for serving.
	said = map[string]Said{
		"health refused": Refused, "health unanswered": Nothing, "health not serving": NotServing,
		"health a fault": Fault, "no health service": NoService,
		"the library answers": Library, "the library is silent": Nothing, "the library answers, in threads": Library,
		"a spare thread answers": Serving,
	}
)

// readScene reads the first cell of a row.
func readScene(t *testing.T, cell string) *scene {
	t.Helper()
	s := &scene{judge: Judge{Timeout: 30 * time.Second}, phase: map[string]span{}}
	for phrase := range strings.SplitSeq(cell, "; ") {
		when := span{0, math.Inf(1)}
		for _, bound := range bounds.FindAllStringSubmatch(phrase, -1) {
			at, _ := strconv.ParseFloat(bound[2], 64)
			if bound[1] == "from" {
				when.from = at
			} else {
				when.until = at
			}
		}
		phrase = bounds.ReplaceAllString(phrase, "")
		if n := callsThat.FindStringSubmatch(phrase); n != nil {
			s.calls, _ = strconv.Atoi(n[1])
			s.slots, _ = strconv.Atoi(cmp.Or(n[2], n[1]))
			s.giveUp, _ = strconv.Atoi(n[5])
			s.renewed, phrase = n[3] != "", "calls"
		} else if n := knownRuns.FindStringSubmatch(phrase); n != nil {
			seconds, _ := strconv.Atoi(n[1])
			s.longest = time.Duration(seconds) * time.Second
		} else if _, health := said[phrase]; phrase == "hang_timeout 0" {
			s.judge.Timeout = 0
		} else if !health && phrase != "idle" && phrase != "idle stream" && phrase != "CPU" && phrase != "1 % CPU" && phrase != "overdue" && phrase != "turns away" {
			t.Fatalf("%q says %q, which is no evidence", cell, phrase)
		}
		s.phase[phrase] = when
	}
	return s
}

func (s *scene) holds(phrase string, at float64) bool {
	when, said := s.phase[phrase]
	return said && at >= when.from && at < when.until
}

// CPU and Threads implement Process.
func (s *scene) CPU() (time.Duration, bool) { return s.used, true }

func (s *scene) Threads() int {
	if _, found := s.phase["the library answers, in threads"]; found {
		return s.slots + ownThreads
	}
	return ownThreads
}

// HoldsThreads implements Process.
func (s *scene) HoldsThreads() bool {
	_, found := s.phase["a spare thread answers"]
	return found
}

// work is what the calls tell at a time. New ones come only to who is not silent.
func (s *scene) work(w Work, zero time.Time, at float64) Work {
	w.InFlight, w.Owing, w.Owed, w.Slots, w.Longest = 0, 0, time.Time{}, s.slots, s.longest
	w.Overdue, w.TurnsAway = s.holds("overdue", at), s.holds("turns away", at)
	if s.holds("idle stream", at) {
		w.InFlight++
	}
	age, now := at, zero.Add(time.Duration(at*float64(time.Second)))
	if s.renewed && !w.Latest.IsZero() {
		age = now.Sub(w.Latest).Seconds()
	}
	switch when := s.phase["calls"]; {
	case s.calls == 0:
		return w
	case at >= when.until:
		w.Heard = zero.Add(time.Duration(when.until) * time.Second)
		w.GivenUp = 0
		return w
	case w.Latest.IsZero():
		w.Latest = zero
		w.Sent += uint64(s.calls)
	case s.giveUp > 0 && age == float64(s.giveUp):
		w.GivenUp, w.First, w.Left = w.GivenUp+s.calls, zero, now
		if s.renewed && !s.judge.IsSilent() {
			w.Latest, age = now, 0
			w.Sent += uint64(s.calls)
		}
	}
	if s.giveUp == 0 || age < float64(s.giveUp) {
		w.InFlight, w.Owing, w.Owed = w.InFlight+s.calls, s.calls, w.Latest
	}
	return w
}

// play runs the scene and returns the verdicts in the words of the table. The health
// question is put every second.
func (s *scene) play() string {
	zero := time.Now()
	var work Work
	var asked time.Time
	s.judge.Process = s
	s.judge.Hear(Answer{Said: Serving, Asked: zero}, zero)
	verdicts, last := []string(nil), "ok"
	for at := 0.0; at < sceneLasts; at += sceneTick {
		now := zero.Add(time.Duration(at * float64(time.Second)))
		work = s.work(work, zero, at)
		if s.holds("CPU", at) {
			s.used += 100 * time.Millisecond
		}
		if s.holds("1 % CPU", at) {
			s.used += 2500 * time.Microsecond
		}
		if at > 0 && at == math.Trunc(at) {
			answer := Answer{Said: Serving, Asked: now, Working: work.InFlight > 0, Overdue: work.Overdue}
			for phrase, what := range said {
				if s.holds(phrase, at) {
					answer.Said = what
				}
			}
			asked = now
			s.judge.Hear(answer, now)
		}
		s.judge.Look(work, asked, now)
		verdict := [...]string{OK: "ok", Suspect: "suspect", Hung: "hung"}[s.judge.Verdict()]
		if !s.judge.Serving {
			verdict = "not serving"
		}
		if verdict != last {
			verdicts, last = append(verdicts, fmt.Sprintf("%s after %g s", verdict, at)), verdict
		}
		if verdict == "hung" {
			break // it is killed
		}
	}
	if verdicts == nil {
		return "ok"
	}
	return strings.Join(verdicts, ", ")
}

// R5, R6: what is thought of an endpoint is what docs/worker-health.md says, case by case.
func TestCases(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/worker-health.md")
	_, table, found := strings.Cut(string(page), "\n## Cases\n")
	testkit.Need(t, found, "docs/worker-health.md has no section Cases")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if strings.HasPrefix(line, "## ") {
			break
		}
		if len(cells) != 3 || strings.HasPrefix(line, "| evidence") {
			continue
		}
		rows++
		evidence := strings.TrimPrefix(cells[0], "| ")
		testkit.Equal(t, readScene(t, evidence).play(), cells[1], "%s, as the table says", evidence)
	}
	testkit.Want(t, rows >= 20, "%d cases were read", rows)
}

// R6: silence tells something only if a call that should long be over was sent after the
// last byte, and others speak; saturation is never sickness.
func TestIsOverdue(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	const now = 100 * s
	silent := Due(90*s, 50*ms)
	for name, test := range map[string]struct {
		due, spoken time.Duration
		want        bool
	}{
		"silent, another speaks":                   {silent, now, true},
		"silent and alone":                         {silent, 0, false},
		"the others spoke before this one was due": {silent, 90*s + 900*ms, false},
		"the others have fallen silent since":      {silent, 95 * s, true},
		"nobody asked":                             {0, now, false},
		"silent for less than a second":            {Due(99*s+ms, ms), now, false},
		"calls of 2 s, the first for 5 s":          {Due(95*s, 2*s), now, false},
		"calls of 2 s, the first for 7 s":          {Due(93*s, 2*s), now, true},
	} {
		testkit.Equal(t, IsOverdue(test.due, test.spoken, now), test.want, "%s", name)
	}
}

// Processes are still while they use no more CPU than runtimes do that only look around;
// use, and a process that has gone, begin it anew.
func TestStillness(t *testing.T) {
	type look struct {
		after    time.Duration // since the first look
		ticks    int64         // of 10 ms
		want     time.Duration
		messages uint64
	}
	const s = time.Second
	for name, looks := range map[string][]look{
		"no use":               {{0, 500, 0, 0}, {s, 500, s, 0}, {30 * s, 500, 30 * s, 0}},
		"a wake-up a second":   {{0, 500, 0, 0}, {10 * s, 502, 10 * s, 0}, {30 * s, 506, 30 * s, 0}},
		"use":                  {{0, 500, 0, 0}, {s, 500, s, 0}, {2 * s, 520, 0, 0}, {5 * s, 520, 3 * s, 0}},
		"steady little use":    {{0, 500, 0, 0}, {10 * s, 510, 0, 0}, {20 * s, 520, 0, 0}},
		"a process has ended":  {{0, 500, 0, 0}, {s, 500, s, 0}, {2 * s, 100, 0, 0}, {3 * s, 100, s, 0}},
		"refuses calls":        {{0, 500, 0, 0}, {s, 502, s, 10}, {10 * s, 510, 10 * s, 40}},
		"computes and refuses": {{0, 500, 0, 0}, {s, 530, 0, 10}},
		"first tick":           {{0, 500, 0, 0}, {s, 501, s, 0}},
	} {
		var still stillness
		began := time.Now()
		for _, l := range looks {
			still.see(time.Duration(l.ticks)*10*time.Millisecond, l.messages, began.Add(l.after))
			testkit.Equal(t, still.last.Sub(still.since), l.want, "%s, after %v: still for", name, l.after)
		}
	}
}
